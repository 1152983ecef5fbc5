/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Churners: processes that make a cgroup, use memory in it, leave it and remove it, again
 * and again, and free that memory while the cgroup is dying or later. page_totals has what
 * they write and remove.
 */
#ifndef KTEARDOWN_CHURNERS_H
#define KTEARDOWN_CHURNERS_H

#include <sys/types.h>

#include "accounting.h"

/*
 * Where they do it: the parent of their cgroups, the cgroup of the churners themselves,
 * and the mounts.
 */
struct churn_place {
	const char *parent, *away, *at;
};

struct churner {
	const struct churn_place *place;
	int number, nodes;
	uint64_t seed;
	_Atomic bool stop, idle; /* idle: it has stopped, and its last files still exist */
	_Atomic int64_t rounds, failed;
	pid_t pid;
};

#define CHURNERS_MAX 32

/* In memory that they share with the agent. */
struct churners {
	struct churner all[CHURNERS_MAX];
	int nr;
};

/*
 * Starts as many as the parameter "churners" says; their choices follow from "seed".
 * Returns 0 or wl_fail()'s value.
 */
int churners_start(struct trial *t, struct churners *c, const struct churn_place *place, int nodes,
		   struct page_totals *totals);
/* Stops them; the last files of each still exist. Reports how many cgroups they made. */
int churners_stop(struct trial *t, struct churners *c);
/* Makes them remove their last files and exit. */
int churners_end(struct trial *t, struct churners *c);

#endif
