/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two victims, one on each CPU, share a quota of which one of them could use a multiple in the
 * kernel. Everything is counted in periods of the quota: a host that stops the guest for a
 * while stops its periods as well.
 */
#ifndef KTEARDOWN_LIMITS_H
#define KTEARDOWN_LIMITS_H

#include <stdint.h>

/* Makes the cgroup below top; 0 or -errno. */
int limits_setup(const char *top);

/* The number of periods of the cgroup's quota until now. */
int64_t limited_periods(void);
/* The cgroup of the cases, and its usual quota. */
extern char limited[128];
#define LIMITED_QUOTA "10000 100000"

/* Each is a case: NULL if all is right, or what is wrong. */
const char *limit_polled(void);
const char *limit_reads(void);
const char *limit_long_call(void);
const char *limit_exit(void);

#endif
