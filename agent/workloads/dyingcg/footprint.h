/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's memory for itself, read when nothing is being given back any more. */
#ifndef KTEARDOWN_FOOTPRINT_H
#define KTEARDOWN_FOOTPRINT_H

#include "workload.h"

/* Slab and per-CPU memory, in kB. */
struct footprint {
	int64_t slab, percpu;
};

/* Both together. */
int64_t footprint_kb(const struct footprint *f);
int footprint_read(struct footprint *f);
/*
 * After what grace periods and the kernel's workers do later: at least at_least_ms,
 * until both have stood still for a second. 0, -ETIMEDOUT after 30 s, or another -errno.
 */
int footprint_settle(struct footprint *f, int64_t at_least_ms);

#endif
