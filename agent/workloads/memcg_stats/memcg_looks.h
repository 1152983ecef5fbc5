/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Looks at what a memory cgroup and all below it count, beside what has to be
 * there. There are many looks and few invariants: the first look that an
 * invariant does not survive is kept, and each is said once.
 */
#ifndef KTEARDOWN_MEMCG_LOOKS_H
#define KTEARDOWN_MEMCG_LOOKS_H

#include "memcg_ledger.h"

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

struct verdict {
	bool looked, failed;
	char detail[160];
};

struct looks {
	const char *cgroup, *drain, *files; /* whose counters; where stocks go; the mounts */
	int nodes;
	int64_t cpus;
	int64_t anon, mapped, slab; /* what the next look has to find, bytes; -1: anything */
	int64_t faults; /* at the last look */
	struct held held; /* what the last look found */
	struct verdict verdicts[INVARIANTS];
};

/* Bytes of all files. */
int64_t looks_file_bytes(const struct looks *l);
/* What the kernel may leave out of slab, bytes. */
int64_t looks_stock(const struct looks *l);
void looks_judge(struct looks *l, enum invariant which, const char *where, int64_t seen,
		 int64_t low, int64_t high);

/*
 * Where nobody changes anything; these return 0 or wl_fail()'s value.
 * look_expect(): what is charged now is what the next looks have to find; mapped_pages -1: any.
 */
int look(struct trial *t, struct looks *l, const char *where);
int look_often(struct trial *t, struct looks *l, const char *where);
int look_expect(struct trial *t, struct looks *l, int64_t mapped_pages);
/* One look while others write, which are in the ledger; base: bytes of files before it began. */
int look_into_storm(struct trial *t, struct looks *l, struct ledger *ledger, int64_t base);
/* All that memory.stat says is held is what it said before. */
void looks_compare(struct looks *l, const char *before);
/* No cgroup below is dying, after a while. */
void looks_wait_until_gone(struct looks *l, const char *where, int64_t limit_ms);

/* A wl_check() for each invariant that was looked at. */
void looks_report(struct trial *t, const struct looks *l);

#endif
