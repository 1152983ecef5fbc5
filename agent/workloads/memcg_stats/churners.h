/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Churners: processes that make a cgroup, use memory in it, leave and remove it,
 * again and again, and let go of that memory while the cgroup is dying or later.
 * What they write and remove is in the ledger.
 */
#ifndef KTEARDOWN_CHURNERS_H
#define KTEARDOWN_CHURNERS_H

#include <sys/types.h>

#include "accounting.h"

/* Where they work: the parent of their cgroups, their own, and the mounts. */
struct churn_place {
	const char *parent, *away, *at;
};

struct churner {
	const struct churn_place *place;
	int number, nodes;
	uint64_t seed;
	_Atomic bool stop, idle; /* idle: has stopped, its last files are still there */
	_Atomic int64_t rounds, failed;
	pid_t pid;
};

#define CHURNERS_MAX 32

/* In memory that they share with the agent. */
struct churners {
	struct churner all[CHURNERS_MAX];
	int nr;
};

/* As many as the parameter "churners" says, with choices by "seed"; 0 or wl_fail()'s value. */
int churners_start(struct trial *t, struct churners *c, const struct churn_place *place, int nodes,
		   struct page_totals *totals);
/* They write no more; the last files of each are still there. Says how many cgroups there were. */
int churners_stop(struct trial *t, struct churners *c);
/* They remove their last files and exit. */
int churners_end(struct trial *t, struct churners *c);

#endif
