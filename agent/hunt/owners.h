/* SPDX-License-Identifier: GPL-2.0 */
/* The owners of a trial: one process, or several that release at once. */
#ifndef KTEARDOWN_HUNT_OWNERS_H
#define KTEARDOWN_HUNT_OWNERS_H

#include "hunt/owner.h"
#include "workload.h"

#define OWNERS_MOST 64

/* Of all owners together; made_ns of the one that took longest. */
struct owners_sums {
	int64_t left, waits, longest_made_ns;
};

/* Those that return int return 0, or what wl_fail() returns. */
int owners_start(struct trial *t, const struct owner_spec *spec, int count);
int owners_make(struct trial *t);
/*
 * Real-time tasks leave no CPU time to work items and kernel threads, unless they wait for them:
 * otherwise the scheduler would decide which part of that work is deferred. The owners precede
 * this process, since an exit goes on when it has notified the parent.
 */
int owners_prioritize(struct trial *t);
/* From now on this process gives way to others. */
int owners_leave_priority(struct trial *t);
int owners_release(struct trial *t);
/* When the release began and ended, as the owners saw it; unless it was by exit. */
void owners_times(int64_t *start_ns, int64_t *end_ns);
struct owners_sums owners_sums(void);
/* Whatever the owners left: only the agent itself and the residents go on. */
void owners_clean(void);

#endif
