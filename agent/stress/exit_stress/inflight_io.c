// SPDX-License-Identifier: GPL-2.0
#include "inflight_io.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REQUESTS 2

static char byte;

int inflight_aio(int fd)
{
	struct iocb request = {
		.aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = fd, .aio_buf = POLLIN};
	struct iocb *requests[] = {&request};
	aio_context_t context = 0;

	if (syscall(SYS_io_setup, 1, &context))
		return -errno;
	return syscall(SYS_io_submit, context, 1L, requests) == 1 ? 0 : -errno;
}

static void *map_ring(int ring, size_t bytes, uint64_t offset)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
		    (off_t)offset);
}

int inflight_uring(int fd)
{
	struct io_uring_params params = {0};
	int ring = syscall(SYS_io_uring_setup, REQUESTS, &params);
	struct io_uring_sqe *entries;
	uint32_t *array;
	char *sq;

	if (ring < 0)
		return -errno;
	sq = map_ring(ring, params.sq_off.array + params.sq_entries * sizeof(*array),
		      IORING_OFF_SQ_RING);
	entries = map_ring(ring, params.sq_entries * sizeof(*entries), IORING_OFF_SQES);
	if (sq == MAP_FAILED || (void *)entries == MAP_FAILED)
		return -errno;
	array = (uint32_t *)(void *)(sq + params.sq_off.array);
	memset(entries, 0, REQUESTS * sizeof(*entries));
	entries[0].opcode = IORING_OP_READ;
	entries[0].addr = (uintptr_t)&byte;
	entries[0].len = sizeof(byte);
	entries[1].opcode = IORING_OP_POLL_ADD;
	entries[1].poll32_events = POLLIN;
	for (uint32_t i = 0; i < REQUESTS; i++) {
		entries[i].fd = fd;
		array[i] = i;
	}
	/* The kernel reads the entries after it has seen the new tail. */
	atomic_store_explicit((_Atomic uint32_t *)(void *)(sq + params.sq_off.tail), REQUESTS,
			      memory_order_release);
	if (syscall(SYS_io_uring_enter, ring, REQUESTS, 0, 0, NULL, 0L) != REQUESTS)
		return -errno;
	return 0;
}
