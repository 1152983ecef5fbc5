/* SPDX-License-Identifier: GPL-2.0 */
/* Cgroups that may use so much CPU in a period and no more (cpu.max), and what became of that. */
#ifndef KTEARDOWN_BANDWIDTH_H
#define KTEARDOWN_BANDWIDTH_H

#include "workload.h"

struct bandwidth {
	int64_t quota_us; /* for each period, of all CPUs together; 0: no limit */
	int64_t period_us;
	int64_t burst_us; /* of unused quota that later periods may use; at most the quota */
};

/* Out of cpu.stat, since the cgroup was made. What the kernel does not tell is 0. */
struct bandwidth_stat {
	int64_t usage_us, periods, throttled, throttled_us, bursts;
};

/* Let cgroups below parent have quotas. 0 or -errno. */
int bandwidth_allow(const char *parent);
/* From now on; a cgroup that was just made has no limit. 0 or -errno. */
int bandwidth_limit(const char *path, const struct bandwidth *b);
/* No limit any more: whoever was out of quota runs again, and can die. 0 or -errno. */
int bandwidth_lift(const char *path);
int bandwidth_read(const char *path, struct bandwidth_stat *s);
/* The same out of the text of the file. */
void bandwidth_parse(const char *text, struct bandwidth_stat *s);

#endif
