/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For how long interrupts were off on a CPU, without a kernel that is built to trace that.
 *
 * A timer interrupts every CPU at a fixed period (perf's software clock). While interrupts
 * are off, it is delayed until they are on again. If two timer interrupts are d apart,
 * interrupts were off for at least d minus the period, and for less than d. The timer
 * costs time itself, but not while interrupts are off.
 */
#ifndef KTEARDOWN_IRQS_OFF_H
#define KTEARDOWN_IRQS_OFF_H

#include "workload.h"

/* Returns 0, or wl_fail()'s value. */
int irqs_off_begin(struct trial *t, int64_t period_ns);
/* The longest time that is certain: d minus the period. Returns 0, or wl_fail()'s value. */
int irqs_off_end(struct trial *t, int64_t *longest_ns);
/* Call this in cleanup(). */
void irqs_off_drop(void);

#endif
