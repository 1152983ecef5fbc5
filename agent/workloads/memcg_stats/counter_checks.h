/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Looks at what a memory cgroup and all below it count, beside what has to be
 * there. There are many looks and few invariants: the first look that an
 * invariant does not survive is kept, and each is said once.
 */
#ifndef KTEARDOWN_COUNTER_CHECKS_H
#define KTEARDOWN_COUNTER_CHECKS_H

#include "accounting.h"

enum invariant {
	FILES_COUNT,
	NODES_COUNT,
	MAPPED_COUNT,
	ANON_COUNT,
	SLAB_COUNT,
	EVENTS_STAY,
	STORM_BOUNDS,
	ALL_BACK,
	ALL_GONE,
	INVARIANTS
};

struct check_result {
	bool checked, failed;
	char detail[160];
};

struct counter_checks {
	const char *cgroup, *drain, *files; /* whose counters; where stocks go; the mounts */
	int nodes;
	int64_t cpus;
	int64_t anon, mapped, slab; /* what the next look has to find, bytes; -1: anything */
	int64_t faults; /* at the last look */
	struct memcg_counters counters; /* what the last look found */
	struct check_result results[INVARIANTS];
};

/* Bytes of all files. */
int64_t file_bytes_expected(const struct counter_checks *l);
/* What the kernel may leave out of slab, bytes. */
int64_t slab_stock_bytes(const struct counter_checks *l);
void judge_counter(struct counter_checks *l, enum invariant which, const char *where, int64_t seen,
		   int64_t low, int64_t high);

/*
 * Where nobody changes anything; these return 0 or wl_fail()'s value.
 * look_expect(): what is charged now is what the next looks have to find; mapped_pages -1: any.
 */
int check_counters(struct trial *t, struct counter_checks *l, const char *where);
int check_counters_often(struct trial *t, struct counter_checks *l, const char *where);
int expect_counters(struct trial *t, struct counter_checks *l, int64_t mapped_pages);
/* One look while others write, which are in the ledger; base: bytes of files before it began. */
int check_counters_in_storm(struct trial *t, struct counter_checks *l, struct page_totals *totals,
			    int64_t base);
/* All that memory.stat says is held is what it said before. */
void compare_counters(struct counter_checks *l, const char *before);
/* No cgroup below is dying, after a while. */
void wait_until_none_dying(struct counter_checks *l, const char *where, int64_t limit_ms);

/* A wl_check() for each invariant that was looked at. */
void report_counter_checks(struct trial *t, const struct counter_checks *l);

#endif
