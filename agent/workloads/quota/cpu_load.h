/* SPDX-License-Identifier: GPL-2.0 */
/* Many tasks in one cgroup that want more CPU than they may have: threads of one process. */
#ifndef KTEARDOWN_CPU_LOAD_H
#define KTEARDOWN_CPU_LOAD_H

#include "workload.h"

enum cpu_load_work {
	CPU_LOAD_SPIN, /* never in the kernel by themselves */
	CPU_LOAD_SYSCALL, /* nearly always in the kernel, for long each time */
	CPU_LOAD_BURST, /* so much CPU in each cycle, and idle for the rest of it */
};

struct cpu_load {
	enum cpu_load_work work;
	int64_t tasks;
	int cpu; /* all on this one; -1: on all */
	int64_t cycle_ns, burst_ns; /* CPUTASKS_BURST: length, and the CPU time of all tasks */
};

/* Start them; they are in the cgroup and wait. 0, or wl_fail()'s value. */
int cpu_load_start(struct trial *t, const char *cgroup, const struct cpu_load *spec);
/* All begin, and the first cycle with them. Returns the time. */
int64_t cpu_load_go(void);
/*
 * CPU time since the look before: of the task that had least, and of all. At most twice. False
 * where nobody can look: it takes a real-time thread, which the kernel may not allow in a cgroup.
 */
bool cpu_load_usage(int64_t *least_ns, int64_t *all_ns);
/* Killed, not reaped. */
void cpu_load_kill(void);

#endif
