/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A storm: victims of all kinds in nested cgroups with quotas, and processes
 * that trouble them, all at once: that move, pin, stop, freeze, trace and kill
 * them, change their policies, their quotas, and the CPUs there are.
 */
#ifndef KTEARDOWN_STORM_H
#define KTEARDOWN_STORM_H

#include "workload.h"

/* The cgroups below top; 0 or -errno. */
int storm_setup(const char *top);

/*
 * So many victims for ms. Afterwards they are in peace, with the quotas that
 * they have by then, and without those who troubled them: NULL, else what went
 * wrong. The seed says who meets what; with plug a CPU goes and comes as well.
 */
const char *storm_run(struct trial *t, int64_t victims, int64_t ms, uint64_t seed, bool hotplug);
/* No quota any more. */
int storm_lift(void);
/* In cleanup(): those who trouble others are gone, and the CPUs are back. */
void storm_drop(void);

#endif
