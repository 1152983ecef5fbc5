/* SPDX-License-Identifier: GPL-2.0 */
/* The ring buffer of a perf event, and reading its records, oldest first. */
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
/* Discards all records that were not read. */
void perf_ring_forget(struct perf_ring *r);
/*
 * Copies the next record, including its struct perf_event_header, cut to room bytes.
 * Returns the length of the copy, 0 if there is no record, or -EPROTO if the ring does not
 * contain valid records.
 */
int perf_ring_next(struct perf_ring *r, void *record, size_t room);

#endif
