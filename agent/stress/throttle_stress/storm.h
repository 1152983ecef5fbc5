/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A storm: victims of all kinds in nested cgroups with quotas, and processes that disturb
 * them, all at once. The disturbers move, pin, stop, freeze, trace and kill them, and
 * change their policies, their quotas, and which CPUs are online.
 */
#ifndef KTEARDOWN_STORM_H
#define KTEARDOWN_STORM_H

#include "workload.h"

/* Makes the cgroups below top; 0 or -errno. */
int storm_setup(const char *top);

/*
 * Runs this many victims for ms. Afterwards the victims are left, without disturbers and
 * with the quotas of that moment. Returns NULL, or what went wrong. The random choices
 * follow from the seed; with hotplug, a CPU goes offline and online as well.
 */
const char *storm_run(struct trial *t, int64_t victims, int64_t ms, uint64_t seed, bool hotplug);
/* Removes all quotas. */
int storm_lift(void);
/* Call this in cleanup(): kills the disturbers and brings the CPUs online. */
void storm_drop(void);

#endif
