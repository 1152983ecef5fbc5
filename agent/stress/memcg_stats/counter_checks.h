/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Compares the counters of a memory cgroup, and of all cgroups below it, with what must be
 * there.
 *
 * There are many checks and few invariants: for each invariant the first check that failed
 * is kept, and each invariant is reported once.
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
	const char *cgroup; /* whose counters */
	const char *drain; /* the cgroup that drains stocks */
	const char *files; /* the mounts */
	int nodes;
	int64_t cpus;
	int64_t anon, mapped, slab; /* what the next check must find, in bytes; -1: any value */
	int64_t faults; /* at the last check */
	struct memcg_counters counters; /* the counters of the last check */
	struct check_result results[INVARIANTS];
};

/* The size of all files in bytes. */
int64_t file_bytes_expected(const struct counter_checks *l);
/* How far slab may be off because of what CPUs keep, in bytes. */
int64_t slab_stock_bytes(const struct counter_checks *l);
void judge_counter(struct counter_checks *l, enum invariant which, const char *where, int64_t seen,
		   int64_t low, int64_t high);

/*
 * For times at which no task changes anything; these return 0 or wl_fail()'s value.
 * expect_counters(): the following checks must find what is charged now; mapped_pages -1:
 * any.
 */
int check_counters(struct trial *t, struct counter_checks *l, const char *where);
int check_counters_often(struct trial *t, struct counter_checks *l, const char *where);
int expect_counters(struct trial *t, struct counter_checks *l, int64_t mapped_pages);
/*
 * One check while churners write; totals has their pages. base: the size of the files
 * before they began.
 */
int check_counters_in_storm(struct trial *t, struct counter_checks *l, struct page_totals *totals,
			    int64_t base);
/* Compares all that memory.stat reports with an earlier text of it. */
void compare_counters(struct counter_checks *l, const char *before);
/* Waits until no cgroup below is dying, or until the limit. */
void wait_until_none_dying(struct counter_checks *l, const char *where, int64_t limit_ms);

/* Calls wl_check() for each invariant that was checked. */
void report_counter_checks(struct trial *t, const struct counter_checks *l);

#endif
