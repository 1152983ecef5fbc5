/* SPDX-License-Identifier: GPL-2.0 */
/* Nested control groups, to a given depth, with limits on the innermost. */
#ifndef KTEARDOWN_NESTED_CGROUPS_H
#define KTEARDOWN_NESTED_CGROUPS_H

#include "workload.h"

#define NESTED_CGROUPS_MAX 64

struct nested_cgroups {
	int64_t depth; /* 0: the root, which has no limits */
	int64_t quota_us, period_us; /* of cpu.max; quota 0: no limit */
	int64_t memory_mb; /* of memory.max; 0: no limit */
	char leaf[sizeof("/sys/fs/cgroup/nest") + 2 * NESTED_CGROUPS_MAX];
};

/*
 * Makes them, with the controllers cpu, memory and pids enabled at every level. Returns 0,
 * or wl_fail()'s value.
 */
int nested_cgroups_make(struct trial *t, struct nested_cgroups *n);
/* Call this in cleanup(): removes all of them and turns the controllers of the root off. */
void nested_cgroups_remove(struct trial *t);

#endif
