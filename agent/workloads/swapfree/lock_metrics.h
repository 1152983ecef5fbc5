/* SPDX-License-Identifier: GPL-2.0 */
/* Lock statistics of the locks that are taken when a swapped page is freed, as metrics. */
#ifndef KTEARDOWN_LOCK_METRICS_H
#define KTEARDOWN_LOCK_METRICS_H

#include "workload.h"

/* Begins to count. */
void lock_metrics_begin(void);
/*
 * What was counted since then: for each lock L, and for all others together, the metrics
 * L_lock_acquired_count, L_lock_contended_count and L_lock_wait_ns. The console names the
 * lock that was waited for longest. No metrics if the kernel does not count locks.
 */
void lock_metrics_sample(struct trial *t);

#endif
