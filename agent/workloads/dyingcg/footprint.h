/* SPDX-License-Identifier: GPL-2.0 */
/* The memory that the kernel uses for itself, read when it is no longer decreasing. */
#ifndef KTEARDOWN_FOOTPRINT_H
#define KTEARDOWN_FOOTPRINT_H

#include "workload.h"

/* Slab and per-CPU memory, in kB. */
struct footprint {
	int64_t slab, percpu;
};

/* The sum of both. */
int64_t footprint_kb(const struct footprint *f);
int footprint_read(struct footprint *f);
/*
 * Waits for what grace periods and the kernel's workers do later: at least at_least_ms,
 * and until both have not changed for a second. 0, -ETIMEDOUT after 30 s, or another
 * -errno.
 */
int footprint_settle(struct footprint *f, int64_t at_least_ms);

#endif
