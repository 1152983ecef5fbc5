/* SPDX-License-Identifier: GPL-2.0 */
/* What can happen to a task that is out of quota, one thing at a time. */
#ifndef KTEARDOWN_CASES_H
#define KTEARDOWN_CASES_H

#include "workload.h"

struct throttle_case {
	const char *invariant;
	/* NULL where all is right, else what is not. Victims that it started may be left. */
	const char *(*run)(void);
};

/* Ended by a NULL invariant. */
extern const struct throttle_case throttle_cases[];

/* The cgroups that the cases need, below top. 0 or -errno. */
int cases_setup(const char *top);

/* The number after "name :" of a file such as /proc/PID/sched; -1 where there is none. */
int64_t sched_value_in(const char *text, const char *name);

#endif
