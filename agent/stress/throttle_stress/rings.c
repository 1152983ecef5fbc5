// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "rings.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "workload.h"

#define IDLE_MS 600000 /* longer than any trial */
#define WAITS 8
#define READS 256
/*
 * A read takes some tens of milliseconds, and a quarter of a second on the instruction clock:
 * there the emulator zeroes a byte with each instruction.
 */
#define PARTS 256
#define PART_BYTES (1 << 20)
#define WORKERS 2

/* Every part of a read goes to the same place: nothing uses the data. */
static char to[PART_BYTES];
static struct iovec parts[PARTS];

static void *map_ring(int ring, size_t bytes, uint64_t offset)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
		    (off_t)offset);
}

/* Submits the same request as often as the ring has room. */
static int submit_all(int ring, const struct io_uring_params *params,
		      const struct io_uring_sqe *request, unsigned int flags)
{
	uint32_t nr = params->sq_entries, *array;
	struct io_uring_sqe *entries;
	char *sq;

	sq = map_ring(ring, params->sq_off.array + nr * sizeof(*array), IORING_OFF_SQ_RING);
	entries = map_ring(ring, nr * sizeof(*entries), IORING_OFF_SQES);
	if (sq == MAP_FAILED || (void *)entries == MAP_FAILED)
		return -errno;
	array = (uint32_t *)(void *)(sq + params->sq_off.array);
	for (uint32_t i = 0; i < nr; i++) {
		entries[i] = *request;
		array[i] = i;
	}
	/* The kernel reads the entries after it has seen the new tail. */
	atomic_store_explicit((_Atomic uint32_t *)(void *)(sq + params->sq_off.tail), nr,
			      memory_order_release);
	return syscall(SYS_io_uring_enter, ring, nr, 0, flags, NULL, 0L) == (long)nr ? 0 : -EIO;
}

/* The thread sleeps until the first request. */
int ring_polled(void)
{
	struct io_uring_params params = {.flags = IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF,
					 .sq_thread_cpu = 0,
					 .sq_thread_idle = IDLE_MS};
	struct io_uring_sqe request = {.opcode = IORING_OP_NOP, .fd = -1};
	int ring = syscall(SYS_io_uring_setup, WAITS, &params);

	return ring < 0 ? -errno : submit_all(ring, &params, &request, IORING_ENTER_SQ_WAKEUP);
}

/* A task that exits must cancel those requests itself that are about a ring. */
int ring_waits(void)
{
	struct io_uring_params params = {0};
	int ring = syscall(SYS_io_uring_setup, WAITS, &params);
	struct io_uring_sqe request = {
		.opcode = IORING_OP_POLL_ADD, .fd = ring, .poll32_events = POLLPRI};

	return ring < 0 ? -errno : submit_all(ring, &params, &request, 0);
}

static int open_zero(void)
{
	for (int i = 0; i < PARTS; i++)
		parts[i] = (struct iovec){.iov_base = to, .iov_len = sizeof(to)};
	return open("/dev/zero", O_RDONLY | O_CLOEXEC);
}

int ring_reads(void)
{
	struct io_uring_params params = {0};
	struct io_uring_sqe request = {.opcode = IORING_OP_READV,
				       .flags = IOSQE_ASYNC,
				       .addr = (uintptr_t)parts,
				       .len = PARTS};
	uint32_t workers[] = {WORKERS, WORKERS};
	uint64_t cpu_0 = 1;
	int ring = syscall(SYS_io_uring_setup, READS, &params);

	request.fd = open_zero();
	if (ring < 0 || request.fd < 0 ||
	    syscall(SYS_io_uring_register, ring, IORING_REGISTER_IOWQ_MAX_WORKERS, workers, 2) ||
	    syscall(SYS_io_uring_register, ring, IORING_REGISTER_IOWQ_AFF, &cpu_0, sizeof(cpu_0)))
		return -errno;
	return submit_all(ring, &params, &request, 0);
}

void read_for_long(void)
{
	static int zero = -1;

	if (zero < 0)
		zero = open_zero();
	while (readv(zero, parts, PARTS) < 0 && errno == EINTR)
		;
}
