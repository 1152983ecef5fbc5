// SPDX-License-Identifier: GPL-2.0
#include "lock_metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/lockstat.h"

/* Which of several classes with one name: locks in different files may have the same name. */
enum lock_which {
	LOCK_ANY, /* all of them, added up */
	LOCK_SHARED, /* those that were ever taken for reading: rwlocks, not spinlocks */
	LOCK_LATER, /* all but the first class of the name that was used since the boot */
};

enum swap_lock {
	LOCK_POOL,
	LOCK_CLASS,
	LOCK_CLUSTER,
	LOCK_DEVICE,
	LOCK_ZONE,
	LOCK_OTHER,
	NR_LOCKS
};

static const char *const metrics[NR_LOCKS] = {"pool",	"class", "cluster",
					      "device", "zone",	 "other"};

/*
 * Names as lockdep has them: the argument of the lock's init function. Older kernels have
 * another name for the pool's lock. It is the only rwlock with either name. The lock of the
 * swap device has the same name as seq_file's, which is used since the boot.
 */
static const struct {
	enum swap_lock lock;
	const char *name;
	enum lock_which which;
} names[] = {
	{LOCK_POOL, "&pool->lock", LOCK_SHARED}, {LOCK_POOL, "&pool->migrate_lock", LOCK_SHARED},
	{LOCK_CLASS, "&class->lock", LOCK_ANY},	 {LOCK_CLUSTER, "&cluster_info[i].lock", LOCK_ANY},
	{LOCK_DEVICE, "&p->lock", LOCK_LATER},	 {LOCK_ZONE, "&zone->lock", LOCK_ANY},
};

static struct lock_table before;

void lock_metrics_begin(void)
{
	free(before.lines);
	lockstat_read(fopen(LOCKSTAT_FILE, "re"), &before);
}

static enum swap_lock lock_of(const struct lock_line *line)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i].name, line->name))
			continue;
		if (names[i].which == LOCK_ANY || (names[i].which == LOCK_SHARED && line->shared) ||
		    (names[i].which == LOCK_LATER && line->later))
			return names[i].lock;
	}
	return LOCK_OTHER;
}

/* What was counted since lock_metrics_begin(). */
static struct lock_use since(const struct lock_line *line)
{
	struct lock_use use = line->use;

	for (size_t i = 0; i < before.count; i++) {
		const struct lock_line *old = &before.lines[i];

		if (strcmp(old->text, line->text))
			continue;
		use.acquired -= old->use.acquired;
		use.contended -= old->use.contended;
		use.wait_ns -= old->use.wait_ns;
		break;
	}
	return use;
}

static void sample(struct trial *t, const char *lock, const char *what, int64_t value)
{
	char metric[64];

	snprintf(metric, sizeof(metric), "%s_lock_%s", lock, what);
	wl_sample(t, metric, value);
}

void lock_metrics_sample(struct trial *t)
{
	struct lock_use sums[NR_LOCKS] = {0};
	const char *worst = "none";
	struct lock_table after;
	int64_t longest = 0;

	if (!before.count || lockstat_read(fopen(LOCKSTAT_FILE, "re"), &after))
		return;
	for (size_t i = 0; i < after.count; i++) {
		struct lock_use use = since(&after.lines[i]),
				*sum = &sums[lock_of(&after.lines[i])];

		sum->acquired += use.acquired;
		sum->contended += use.contended;
		sum->wait_ns += use.wait_ns;
		if (use.wait_ns > longest) {
			longest = use.wait_ns;
			worst = after.lines[i].text;
		}
	}
	for (int i = 0; i < NR_LOCKS; i++) {
		sample(t, metrics[i], "acquired_count", sums[i].acquired);
		sample(t, metrics[i], "contended_count", sums[i].contended);
		sample(t, metrics[i], "wait_ns", sums[i].wait_ns);
	}
	wl_alive(t, "waited for longest: %s, %lld ns", worst, (long long)longest);
	free(after.lines);
}
