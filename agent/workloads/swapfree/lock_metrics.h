/* SPDX-License-Identifier: GPL-2.0 */
/* Lock statistics of the locks that are taken when a swapped page is freed, as metrics. */
#ifndef KTEARDOWN_LOCK_METRICS_H
#define KTEARDOWN_LOCK_METRICS_H

#include "lockstat.h"

enum swap_lock {
	SWAP_LOCK_POOL, /* zsmalloc: the pool */
	SWAP_LOCK_CLASS, /* zsmalloc: a size class */
	SWAP_LOCK_CLUSTER, /* a cluster of swap slots */
	SWAP_LOCK_DEVICE, /* the swap device */
	NR_SWAP_LOCKS,
};

struct lock_metrics {
	bool counted; /* the kernel counts locks */
	struct lock_use use[NR_SWAP_LOCKS];
};

void lock_metrics_read(struct lock_metrics *l);
/*
 * The difference of the two, for each lock L: the metrics L_lock_acquired_count,
 * L_lock_contended_count and L_lock_wait_ns. No metrics if the kernel does not count
 * locks.
 */
void lock_metrics_sample(struct trial *t, const struct lock_metrics *from,
			 const struct lock_metrics *to);

#endif
