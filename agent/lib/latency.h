/* SPDX-License-Identifier: GPL-2.0 */
/* How long something that wanted to run had to wait: pure, from time stamps to figures. */
#ifndef KTEARDOWN_LATENCY_H
#define KTEARDOWN_LATENCY_H

#include "workload.h"

/*
 * The gaps between stamps that overlap the time from..to, in ns, into gaps (room
 * for n - 1). Returns how many.
 */
size_t latency_gaps(const int64_t *stamps, size_t n, int64_t from, int64_t to, int64_t *gaps);

/* 0 for none. */
int64_t latency_longest(const int64_t *gaps, size_t n);

/*
 * The gap that permille of all attempts to run, one every period_ns, do not
 * exceed. A task that sleeps and is kept from running for a second makes one gap,
 * and not the thousand that it would have made: counted as they are, the gaps
 * of a starved probe are as good as those of a healthy one. So a gap stands for
 * an attempt in each of its periods, of which the later ones waited less: the
 * usual correction of "coordinated omission" (Gil Tene, HdrHistogram).
 */
int64_t latency_percentile(const int64_t *gaps, size_t n, int64_t period_ns, int permille);

/* An operation: when it was due, when it was done. */
struct operation {
	int64_t from_ns, to_ns;
};

/*
 * For how long one of the operations or several were under way that took longer than
 * limit_ns; time that they share counts once. They are in the order of from_ns.
 */
int64_t latency_blocked(const struct operation *operations, size_t n, int64_t limit_ns);

/* The lower median; sorts the values. 0 for none. */
int64_t latency_median(int64_t *values, size_t n);

#endif
