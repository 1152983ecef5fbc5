/* SPDX-License-Identifier: GPL-2.0 */
/* Work that the kernel does later: by kernel threads, work items, RCU callbacks, interrupts. */
#ifndef KTEARDOWN_HUNT_DEFERRED_H
#define KTEARDOWN_HUNT_DEFERRED_H

#include "workload.h"

/* What this CPU did for others while the caller wanted all of it. */
struct taken {
	int64_t ns, in_ns; /* of how long a stretch */
	int64_t worked_ns; /* from its beginning until others last did more than a tick */
	bool quiet; /* at the end others had left the CPU alone */
	bool worked; /* before that they did more than the ticks of a quiet CPU */
};

/* Computes until others leave this CPU alone for 40 ms, at most for limit_ns from begin on. */
struct taken take_until_quiet(int64_t begin, int64_t limit_ns);
/* What `later` has that a quiet CPU does not take in the same time; at least 0. */
int64_t taken_beyond(const struct taken *quiet, const struct taken *later);
/*
 * How long the CPUs have been idle since boot, all together. The first of these that there is:
 *
 * - /proc/timer_list says it in ns, without interrupts, up to 7.2. It looks at all timers of a CPU
 *   for each of them: with 18,432 it takes minutes (print_active_timers() of 6.12), so not with
 *   many timers.
 * - /proc/schedstat says for how long tasks have had each CPU. The rest is idle, with interrupts
 *   that came in that time.
 * - /proc/uptime says it to 10 ms.
 */
enum idle_source { IDLE_OF_TIMERS, IDLE_WITHOUT_TASKS, IDLE_TO_10MS };

enum idle_source idle_source(bool many_timers);
/* At the beginning of a stretch; the caller may sleep. -1: the kernel does not say. */
int64_t idle_begin_ns(enum idle_source source);
/* At its end, soon after the caller was woken. */
int64_t idle_total_ns(enum idle_source source);

#endif
