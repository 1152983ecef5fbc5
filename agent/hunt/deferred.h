/* SPDX-License-Identifier: GPL-2.0 */
/* Work that the kernel does later: by kernel threads, work items, RCU callbacks, interrupts. */
#ifndef KTEARDOWN_HUNT_DEFERRED_H
#define KTEARDOWN_HUNT_DEFERRED_H

#include "workload.h"

/* What this CPU did for others while the caller wanted all of it. */
struct taken {
	int64_t ns, in_ns; /* of how long a stretch */
	bool quiet; /* at the end others had left the CPU alone */
	bool worked; /* before that they did more than the ticks of a quiet CPU */
};

/* Computes until others leave this CPU alone for 40 ms, at most for limit_ns from begin on. */
struct taken take_until_quiet(int64_t begin, int64_t limit_ns);
/* What `later` has that a quiet CPU does not take in the same time; at least 0. */
int64_t taken_beyond(const struct taken *quiet, const struct taken *later);
/*
 * How long the CPUs have been idle since boot, all together; -1: the kernel does not say. Only
 * /proc/timer_list says it in ns, and it looks at all timers of a CPU for each of them: with 18,432
 * it takes minutes (print_active_timers() of 6.12). With `many_timers` it is a multiple of 10 ms,
 * from another file.
 */
int64_t idle_total_ns(bool many_timers);

#endif
