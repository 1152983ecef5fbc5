/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Latency probes: processes that want to run at fixed times and record how late they ran. They
 * show how usable the system is meanwhile.
 *
 *	probe           one on each CPU, bound to it: sleeps for a millisecond, again and again
 *	newcomer        a process that is forked, executes a program and exits, and is waited for
 *	real-time probe a real-time task: counts the runnable tasks, and watches the free memory; it
 *	                is late only if the kernel gives it no CPU
 *	lone kill       if wanted: a sleeping process, alone in its group, is killed and waited for
 */
#ifndef KTEARDOWN_LATENCY_PROBE_H
#define KTEARDOWN_LATENCY_PROBE_H

#include "workload.h"

struct probe_spec {
	bool any; /* otherwise no probe is started */
	bool lone_kills;
	bool sessions; /* each probe leads a session: with SCHED_AUTOGROUP a group of its own */
	int64_t free_kb; /* look for the time when so much memory is free; 0: do not look */
};

struct probe_results {
	int64_t longest_ns; /* the longest time between two runs of any probe */
	int64_t p50_ns, p99_ns; /* of the attempts of all probes (latency.h) */
	int64_t newcomer_ns, newcomer_worst_ns; /* median and longest */
	int64_t lone_kill_ns, lone_kill_worst_ns; /* 0 if there were none */
	int64_t free_ns; /* when the wanted memory was seen to be free; 0: it was not */
	int64_t realtime_ns; /* the longest gap of the real-time probe */
	int64_t runnable; /* the largest number at once that the real-time probe saw */
};

/* Starts the probes, if any; they run and record nothing yet. Returns 0, or wl_fail()'s value. */
int latency_probes_start(struct trial *t, const struct probe_spec *spec);
/* Starts recording. Returns the time. */
int64_t latency_probes_from(void);
/* Returns when the wanted memory was seen to be free, or after the limit. */
void latency_probes_await_memory(int64_t limit_ms);
/*
 * Stops the probes, each after one more run, and summarizes what they recorded until then.
 * Returns 0, or wl_fail()'s value.
 */
int latency_probes_stop(struct trial *t, int64_t until_ns, struct probe_results *w);
/* Call this in cleanup(): kills all probes that are left. */
void latency_probes_drop(void);

#endif
