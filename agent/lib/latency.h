/* SPDX-License-Identifier: GPL-2.0 */
/* How long a task that wanted to run had to wait. Pure functions from time stamps to figures. */
#ifndef KTEARDOWN_LATENCY_H
#define KTEARDOWN_LATENCY_H

#include "workload.h"

/*
 * Writes the gaps between stamps that overlap the time from..to, in ns, to gaps (room for
 * n - 1). Returns how many there are.
 */
size_t latency_gaps(const int64_t *stamps, size_t n, int64_t from, int64_t to, int64_t *gaps);

/* 0 if there are no gaps. */
int64_t latency_longest(const int64_t *gaps, size_t n);

/*
 * The gap that permille of all attempts to run, one every period_ns, do not exceed.
 *
 * A task that sleeps and cannot run for a second makes one gap instead of the thousand
 * that it would have made. If each gap counted once, a starved probe would look as good as
 * a healthy one. So a gap counts as one attempt in each of its periods, and the later ones
 * waited less: the usual correction of "coordinated omission" (Gil Tene, HdrHistogram).
 */
int64_t latency_percentile(const int64_t *gaps, size_t n, int64_t period_ns, int permille);

/* An operation: when it was due, and when it was done. */
struct operation {
	int64_t from_ns, to_ns;
};

/*
 * The total time during which at least one operation was in progress that took longer than
 * limit_ns; time that operations share counts once. The operations are sorted by from_ns.
 */
int64_t latency_blocked(const struct operation *operations, size_t n, int64_t limit_ns);

/* The lower median; sorts the values. 0 without values. */
int64_t latency_median(int64_t *values, size_t n);

#endif
