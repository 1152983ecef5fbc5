/* SPDX-License-Identifier: GPL-2.0 */
/*
 * For how long interrupts were off on some CPU, without a kernel that is built to tell.
 *
 * A timer interrupts every CPU at a fixed period (perf's software clock). Where interrupts
 * are off it comes when they are on again: two of them that are d apart say that
 * interrupts were off for at least d less the period, and for less than d. The timer costs
 * time itself, but none while interrupts are off.
 */
#ifndef KTEARDOWN_IRQS_OFF_H
#define KTEARDOWN_IRQS_OFF_H

#include "workload.h"

/* 0, or wl_fail()'s value. */
int irqs_off_begin(struct trial *t, int64_t period_ns);
/* The longest that is certain: d less the period. 0, or wl_fail()'s value. */
int irqs_off_end(struct trial *t, int64_t *longest_ns);
/* In cleanup(). */
void irqs_off_drop(void);

#endif
