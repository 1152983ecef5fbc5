/* SPDX-License-Identifier: GPL-2.0 */
/* Several processes that do the same at the same time. */
#ifndef KTEARDOWN_PARALLEL_H
#define KTEARDOWN_PARALLEL_H

#include "workload.h"

/* A member's work, in a process of its own, count times. False: it failed. */
typedef bool parallel_work(int64_t count);

/*
 * Let parallel processes, which are there and wait before the clock starts, do total
 * pieces of work between them. elapsed_ns: until the last of them was reaped.
 * 0, or wl_fail()'s value.
 */
int parallel_run(struct trial *t, int64_t parallel, int64_t total, parallel_work *work,
		 int64_t *elapsed_ns);

#endif
