// SPDX-License-Identifier: GPL-2.0
#include "lock_metrics.h"

#include <stdio.h>

/*
 * Older kernels have another name for the pool's lock. It is the only rwlock with either
 * name. The lock of the swap device has the same name as seq_file's, which is used since
 * the boot.
 */
static const struct {
	enum swap_lock lock;
	struct lock_wanted wanted;
} names[] = {
	{SWAP_LOCK_POOL, {"&pool->lock", LOCK_SHARED}},
	{SWAP_LOCK_POOL, {"&pool->migrate_lock", LOCK_SHARED}},
	{SWAP_LOCK_CLASS, {"&class->lock", LOCK_ANY}},
	{SWAP_LOCK_CLUSTER, {"&cluster_info[i].lock", LOCK_ANY}},
	{SWAP_LOCK_DEVICE, {"&p->lock", LOCK_LATER}},
};

void lock_metrics_read(struct lock_metrics *l)
{
	struct lock_wanted wanted[ARRAY_SIZE(names)];
	struct lock_use use[ARRAY_SIZE(names)];

	*l = (struct lock_metrics){0};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		wanted[i] = names[i].wanted;
	l->counted = !lockstat_read(wanted, ARRAY_SIZE(names), use);
	for (size_t i = 0; l->counted && i < ARRAY_SIZE(names); i++) {
		l->use[names[i].lock].acquired += use[i].acquired;
		l->use[names[i].lock].contended += use[i].contended;
		l->use[names[i].lock].wait_ns += use[i].wait_ns;
	}
}

static void sample(struct trial *t, const char *lock, const char *what, int64_t value)
{
	char metric[64];

	snprintf(metric, sizeof(metric), "%s_lock_%s", lock, what);
	wl_sample(t, metric, value);
}

void lock_metrics_sample(struct trial *t, const struct lock_metrics *from,
			 const struct lock_metrics *to)
{
	static const char *const words[] = {"pool", "class", "cluster", "device"};

	if (!from->counted || !to->counted)
		return;
	for (int i = 0; i < NR_SWAP_LOCKS; i++) {
		const struct lock_use *a = &from->use[i], *b = &to->use[i];

		sample(t, words[i], "acquired_count", b->acquired - a->acquired);
		sample(t, words[i], "contended_count", b->contended - a->contended);
		sample(t, words[i], "wait_ns", b->wait_ns - a->wait_ns);
	}
}
