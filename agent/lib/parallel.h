/* SPDX-License-Identifier: GPL-2.0 */
/* Several processes that do the same work at the same time. */
#ifndef KTEARDOWN_PARALLEL_H
#define KTEARDOWN_PARALLEL_H

#include "workload.h"

/* The work of one process, to be done count times. False: it failed. */
typedef bool parallel_work(int64_t count);

/*
 * Starts `parallel` processes, which wait until the clock is started, and divides `total`
 * pieces of work among them. elapsed_ns: the time until the last process was reaped.
 * Returns 0, or wl_fail()'s value.
 */
int parallel_run(struct trial *t, int64_t parallel, int64_t total, parallel_work *work,
		 int64_t *elapsed_ns);

#endif
