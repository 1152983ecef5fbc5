/* SPDX-License-Identifier: GPL-2.0 */
/* The buffer that a perf event writes its records to, and reading them out of it, oldest first. */
#ifndef KTEARDOWN_PERF_RING_H
#define KTEARDOWN_PERF_RING_H

#include "workload.h"

struct perf_ring {
	void *map;
	size_t size; /* bytes of data, without the page of pointers before them */
};

/* pages is a power of two. 0 or -errno. */
int perf_ring_open(struct perf_ring *r, int fd, size_t pages);
void perf_ring_close(struct perf_ring *r);
/* Forgets what was not read. */
void perf_ring_forget(struct perf_ring *r);
/*
 * Copies the next record, its struct perf_event_header included, cut to room
 * bytes. Returns the length of what was copied, 0 where there is no record, or
 * -EPROTO where the ring does not hold records.
 */
int perf_ring_next(struct perf_ring *r, void *record, size_t room);

#endif
