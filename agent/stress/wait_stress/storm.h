/* SPDX-License-Identifier: GPL-2.0 */
/* Many processes fork, exit and wait at the same time: each is reported exactly once. */
#ifndef KTEARDOWN_STORM_H
#define KTEARDOWN_STORM_H

#include "workload.h"

/* Returns 0, or wl_fail()'s value. */
int storm(struct trial *t, int64_t ms, uint64_t seed);

#endif
