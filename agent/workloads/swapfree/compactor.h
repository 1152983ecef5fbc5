/* SPDX-License-Identifier: GPL-2.0 */
/* A process that asks for compaction all the while, as fast as it is done. One at a time. */
#ifndef KTEARDOWN_COMPACTOR_H
#define KTEARDOWN_COMPACTOR_H

#include "workload.h"

/*
 * Write to this file over and over, on this CPU. Returns when it was done once. 0, or
 * wl_fail()'s value.
 */
int compactor_start(struct trial *t, const char *file, int cpu);
/* How often it was done until now; 0 where there is no compactor. */
int64_t compactor_rounds(void);
/* 0, or wl_fail()'s value where it had stopped by itself. Without a compactor nothing is done. */
int compactor_stop(struct trial *t);
/* For cleanup(): whatever state it is in. */
void compactor_drop(void);

#endif
