/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A process that starts compactions all the time, each as soon as the previous one is
 * done. Only one such process can run.
 */
#ifndef KTEARDOWN_COMPACTOR_H
#define KTEARDOWN_COMPACTOR_H

#include "workload.h"

/*
 * Writes to this file again and again, on this CPU. Returns after the first write. 0, or
 * wl_fail()'s value.
 */
int compactor_start(struct trial *t, const char *file, int cpu);
/* The number of compactions so far; 0 if there is no compactor. */
int64_t compactor_rounds(void);
/*
 * Returns 0, or wl_fail()'s value if it had stopped by itself. Does nothing if there is no
 * compactor.
 */
int compactor_stop(struct trial *t);
/* Call this in cleanup(), whatever state it is in. */
void compactor_drop(void);

#endif
