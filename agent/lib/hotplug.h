/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Takes a CPU offline and online again, and avoids a bug of Linux 6.12 that this can
 * trigger.
 *
 * Linux 6.12 counts the bandwidth of the fair server wrongly when a CPU goes offline while
 * its server runs (557a6bfc662c, "sched/fair: Add trivial fair server", v6.12). It warns
 * about this in inactive_task_timer(), and may then not run fair tasks on the CPU below a
 * real-time task. This happens with and without the changes that are compared here. A
 * workload that would be disturbed by it stops the servers meanwhile: hotplug_begin() and
 * hotplug_end().
 */
#ifndef KTEARDOWN_HOTPLUG_H
#define KTEARDOWN_HOTPLUG_H

#include "workload.h"

/* If the kernel has no fair server, or no debugfs that controls it, nothing is changed. */
void hotplug_begin(void);
/* CPU 1. 0 or -errno. */
int hotplug_cpu1(bool online);
/* Brings CPU 1 online and restores the servers. */
void hotplug_end(void);

#endif
