/* SPDX-License-Identifier: GPL-2.0 */
/* Control groups nested in each other, as deep as wanted, with limits on the innermost. */
#ifndef KTEARDOWN_NESTED_CGROUPS_H
#define KTEARDOWN_NESTED_CGROUPS_H

#include "workload.h"

#define NESTED_CGROUPS_MAX 64

struct nested_cgroups {
	int64_t depth; /* 0: the root; it has no limits */
	int64_t quota_us, period_us; /* of cpu.max; quota 0: none */
	int64_t memory_mb; /* of memory.max; 0: none */
	char leaf[sizeof("/sys/fs/cgroup/nest") + 2 * NESTED_CGROUPS_MAX];
};

/* Make them, with the controllers cpu, memory and pids all the way down. 0, or wl_fail()'s value.
 */
int nested_cgroups_make(struct trial *t, struct nested_cgroups *n);
/* In cleanup(): all of them are gone, and the root has the controllers off. */
void nested_cgroups_remove(struct trial *t);

#endif
