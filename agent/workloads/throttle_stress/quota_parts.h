/* SPDX-License-Identifier: GPL-2.0 */
/* What the cases of lib/quota_cases.h are made of. */
#ifndef KTEARDOWN_QUOTA_PARTS_H
#define KTEARDOWN_QUOTA_PARTS_H

#include "quota_victims.h"

#define EXPECT(condition, otherwise)                                                               \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return otherwise;                                                          \
	} while (0)

/* Cases of their own, in a cgroup that has a quota. What is wrong, or NULL. */
const char *quota_load_follows(const char *cgroup);
const char *quota_shared(const char *cgroup);

#endif
