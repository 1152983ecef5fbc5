/* SPDX-License-Identifier: GPL-2.0 */
/* One io_uring, and requests that are submitted to it one by one. */
#ifndef KTEARDOWN_HUNT_RING_H
#define KTEARDOWN_HUNT_RING_H

#include "hunt/kind.h"

#include <linux/io_uring.h>

static struct {
	int fd;
	struct io_uring_params params;
	char *memory; /* both rings */
	struct io_uring_sqe *entries;
} ring;

/* Room for that many submissions at once, and for the completion of every object. */
static inline void ring_make(unsigned int entries)
{
	struct io_uring_params *p = &ring.params;
	size_t size;

	p->flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
	p->cq_entries = 2 * (nr_objects + entries);
	ring.fd = MUST(syscall(SYS_io_uring_setup, entries, p));
	size = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	if (size < p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe))
		size = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	ring.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd,
			   IORING_OFF_SQ_RING);
	MUST((long)ring.memory);
	ring.entries =
		mmap(NULL, p->sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, ring.fd, IORING_OFF_SQES);
	MUST((long)ring.entries);
}

/* Puts one request into the ring of submissions. */
static inline void ring_put(const struct io_uring_sqe *request)
{
	uint32_t *tail = (uint32_t *)(ring.memory + ring.params.sq_off.tail);
	uint32_t *places = (uint32_t *)(ring.memory + ring.params.sq_off.array);
	uint32_t at = *tail & (ring.params.sq_entries - 1);

	ring.entries[at] = *request;
	places[at] = at;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
}

static inline void ring_submit(const struct io_uring_sqe *request)
{
	ring_put(request);
	MUST(syscall(SYS_io_uring_enter, ring.fd, 1, 0, 0, NULL, 0));
}

/* Registers, or takes back, what the ring keeps. */
static inline void ring_register(unsigned int what, void *at, unsigned int count)
{
	MUST(syscall(SYS_io_uring_register, ring.fd, what, at, count));
}

static inline void ring_close(void)
{
	MUST(close(ring.fd));
}

/* As the arguments of KIND(): the objects are released with their ring. */
#define RING_CLOSED .exit = true, .call = "close(ring)", .release = ring_close

#endif
