/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A CPU that goes offline and comes back, and what 6.12 makes of that.
 *
 * Linux 6.12 loses count of the fair server's bandwidth when a CPU goes away while the server runs
 * (557a6bfc662c, "sched/fair: Add trivial fair server", v6.12), warns of it in
 * inactive_task_timer(), and may then leave fair tasks without the CPU below a real-time task. It
 * does so with and without any of the changes that are judged here. A workload that minds has the
 * servers rest meanwhile: hotplug_begin() and hotplug_end().
 */
#ifndef KTEARDOWN_HOTPLUG_H
#define KTEARDOWN_HOTPLUG_H

#include "workload.h"

/* Where the kernel has no fair server, or no debugfs to say so, nothing is changed. */
void hotplug_begin(void);
/* CPU 1. 0 or -errno. */
int hotplug_cpu1(bool online);
/* CPU 1 is online, and the servers are what they were. */
void hotplug_end(void);

#endif
