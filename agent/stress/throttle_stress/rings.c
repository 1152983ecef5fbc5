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
#define MOST_PARTS 1024
#define PART_BYTES (1 << 20)
#define WORKERS 2

/* Every part of a read goes to the same place: nothing uses the data. */
static char to[PART_BYTES];
static struct iovec parts[MOST_PARTS];

static void *map_ring(int ring, size_t bytes, uint64_t offset)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
		    (off_t)offset);
}

/* Submits the same request so many times; no other process submits at the same time. */
static int submit(int ring, const struct io_uring_params *params,
		  const struct io_uring_sqe *request, uint32_t count, unsigned int flags)
{
	uint32_t nr = params->sq_entries, *array;
	struct io_uring_sqe *entries;
	_Atomic uint32_t *tail;
	char *sq;

	sq = map_ring(ring, params->sq_off.array + nr * sizeof(*array), IORING_OFF_SQ_RING);
	entries = map_ring(ring, nr * sizeof(*entries), IORING_OFF_SQES);
	if (sq == MAP_FAILED || (void *)entries == MAP_FAILED)
		return -errno;
	array = (uint32_t *)(void *)(sq + params->sq_off.array);
	tail = (_Atomic uint32_t *)(void *)(sq + params->sq_off.tail);
	for (uint32_t i = *tail; i != *tail + count; i++) {
		entries[i % nr] = *request;
		array[i % nr] = i % nr;
	}
	/* The kernel reads the entries after it has seen the new tail. */
	atomic_store_explicit(tail, *tail + count, memory_order_release);
	return syscall(SYS_io_uring_enter, ring, count, 0, flags, NULL, 0L) == (long)count ? 0
											   : -EIO;
}

/* Fills the ring with the same request. */
static int submit_all(int ring, const struct io_uring_params *params,
		      const struct io_uring_sqe *request, unsigned int flags)
{
	return submit(ring, params, request, params->sq_entries, flags);
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
	for (int i = 0; i < MOST_PARTS; i++)
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

/* -- a ring that is made before the processes that use it -- */

#define WRITES 256

enum { ITS_WRITES, OUR_WRITE, ITS_READ };

static struct io_uring_params shared;
static int shared_ring = -1, written = -1;

int ring_share(void)
{
	uint32_t workers[] = {WORKERS, WORKERS};

	memset(&shared, 0, sizeof(shared));
	shared_ring = syscall(SYS_io_uring_setup, 2 * WRITES, &shared);
	written = memfd_create("written", MFD_CLOEXEC);
	if (shared_ring < 0 || written < 0)
		return -errno;
	return syscall(SYS_io_uring_register, shared_ring, IORING_REGISTER_IOWQ_MAX_WORKERS,
		       workers, 2)
		       ? -errno
		       : 0;
}

void ring_unshare(void)
{
	close(written);
	close(shared_ring);
}

static int share_request(struct io_uring_sqe request, uint64_t id, uint32_t count)
{
	request.flags = IOSQE_ASYNC;
	request.user_data = id;
	return submit(shared_ring, &shared, &request, count, 0);
}

static int write_parts(uint64_t id, uint32_t count, uint32_t bytes)
{
	return share_request((struct io_uring_sqe){.opcode = IORING_OP_WRITE,
						   .fd = written,
						   .addr = (uintptr_t)to,
						   .len = bytes},
			     id, count);
}

int ring_writes(void)
{
	return write_parts(ITS_WRITES, WRITES, PART_BYTES);
}

int ring_write_once(void)
{
	return write_parts(OUR_WRITE, 1, 1);
}

int ring_read_once(void)
{
	int fd = open_zero();

	return fd < 0 ? -errno
		      : share_request((struct io_uring_sqe){.opcode = IORING_OP_READV,
							    .fd = fd,
							    .addr = (uintptr_t)parts,
							    .len = MOST_PARTS},
				      ITS_READ, 1);
}

/* Nothing removes what has completed: it is still there. */
static bool has_completed(uint64_t id)
{
	size_t bytes = shared.cq_off.cqes + shared.cq_entries * sizeof(struct io_uring_cqe);
	char *cq = map_ring(shared_ring, bytes, IORING_OFF_CQ_RING);
	struct io_uring_cqe *done;
	bool found = false;
	uint32_t tail;

	if (cq == MAP_FAILED)
		return false;
	done = (struct io_uring_cqe *)(void *)(cq + shared.cq_off.cqes);
	tail = atomic_load_explicit((_Atomic uint32_t *)(void *)(cq + shared.cq_off.tail),
				    memory_order_acquire);
	for (uint32_t i = 0; i < tail; i++)
		found = found || done[i].user_data == id;
	munmap(cq, bytes);
	return found;
}

bool ring_wrote_once(void)
{
	return has_completed(OUR_WRITE);
}

bool ring_read_done(void)
{
	return has_completed(ITS_READ);
}

void read_for_long(void)
{
	static int zero = -1;

	if (zero < 0)
		zero = open_zero();
	while (readv(zero, parts, PARTS) < 0 && errno == EINTR)
		;
}
