/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What others notice of a release: how late a timer's interrupt comes, a real-time task and an
 * ordinary task that each want to run every millisecond.
 */
#ifndef KTEARDOWN_HUNT_BYSTANDERS_H
#define KTEARDOWN_HUNT_BYSTANDERS_H

#include "workload.h"

struct lateness {
	int64_t probe_ns; /* an ordinary task */
	int64_t realtime_ns; /* preemption off, or interrupts off */
	int64_t irqs_off_ns; /* -1: the kernel has no such timer, or samples were lost */
};

/* Opens the timer, once in a boot. Whether its buffer takes memory from now on. */
bool bystanders_open(void);
/* Starts them; they record nothing yet. Returns 0, or wl_fail()'s value. */
int bystanders_start(struct trial *t);
void bystanders_from(void);
void bystanders_stop(struct lateness *l);

#endif
