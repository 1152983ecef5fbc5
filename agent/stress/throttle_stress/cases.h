/* SPDX-License-Identifier: GPL-2.0 */
/* What can happen to a throttled task, one thing at a time. */
#ifndef KTEARDOWN_CASES_H
#define KTEARDOWN_CASES_H

#include "workload.h"

#define EXPECT(condition, otherwise)                                                               \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return otherwise;                                                          \
	} while (0)

struct throttle_case {
	const char *invariant;
	/*
	 * Returns NULL if all is right, otherwise what is wrong. Victims that it started may be
	 * left.
	 */
	const char *(*run)(void);
};

/* Ended by a NULL invariant. */
extern const struct throttle_case throttle_cases[];

/* Makes the cgroups that the cases need, below top. 0 or -errno. */
int cases_setup(const char *top);

/* The number after "name :" in a file such as /proc/PID/sched; -1 if the name is missing. */
int64_t sched_value_in(const char *text, const char *name);

#endif
