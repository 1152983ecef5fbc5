/* SPDX-License-Identifier: GPL-2.0 */
/* Cgroups with a limit on CPU time (cpu.max), and the kernel's statistics about it. */
#ifndef KTEARDOWN_BANDWIDTH_H
#define KTEARDOWN_BANDWIDTH_H

#include "workload.h"

struct bandwidth {
	int64_t quota_us; /* per period, for all CPUs together; 0: no limit */
	int64_t period_us;
	int64_t burst_us; /* unused quota that later periods may use; at most the quota */
};

/* From cpu.stat, since the cgroup was made. A value that the kernel does not report is 0. */
struct bandwidth_stat {
	int64_t usage_us, periods, throttled, throttled_us, bursts;
};

/* Enables quotas for cgroups below parent. 0 or -errno. */
int bandwidth_allow(const char *parent);
/* Takes effect at once; a new cgroup has no limit. 0 or -errno. */
int bandwidth_limit(const char *path, const struct bandwidth *b);
/* Removes the limit: a throttled task runs again, and can exit. 0 or -errno. */
int bandwidth_lift(const char *path);
int bandwidth_read(const char *path, struct bandwidth_stat *s);
/* The same from the text of the file. */
void bandwidth_parse(const char *text, struct bandwidth_stat *s);

#endif
