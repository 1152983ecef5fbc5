/* SPDX-License-Identifier: GPL-2.0 */
/* Many tasks in one cgroup that want more CPU time than they may have: threads of one process. */
#ifndef KTEARDOWN_CPU_LOAD_H
#define KTEARDOWN_CPU_LOAD_H

#include "workload.h"

enum cpu_load_work {
	CPU_LOAD_SPIN, /* never in the kernel by themselves */
	CPU_LOAD_SYSCALL, /* nearly always in the kernel, for long each time */
	CPU_LOAD_BURST, /* a fixed amount of CPU time in each cycle, then idle until the next one */
};

struct cpu_load {
	enum cpu_load_work work;
	int64_t tasks;
	int cpu; /* all on this CPU; -1: on all CPUs */
	/* CPU_LOAD_BURST: the length of a cycle, and the CPU time of all tasks in it */
	int64_t cycle_ns, burst_ns;
};

/* Starts the tasks; they are in the cgroup and wait. Returns 0, or wl_fail()'s value. */
int cpu_load_start(struct trial *t, const char *cgroup, const struct cpu_load *spec);
/* All tasks begin, and the first cycle begins with them. Returns the time. */
int64_t cpu_load_go(void);
/*
 * The CPU time since the previous call: of the task that got least, and of all. May be
 * called twice. False if it cannot be read: that takes a real-time thread, which the
 * kernel may not allow in a cgroup.
 */
bool cpu_load_usage(int64_t *least_ns, int64_t *all_ns);
/* Kills the process; does not reap it. */
void cpu_load_kill(void);

#endif
