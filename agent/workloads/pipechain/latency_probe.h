/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Latency probes: processes that want to run at fixed times and record how late they ran. They
 * show how usable the system is meanwhile.
 *
 *	probe           one on each CPU, bound to it: sleeps for a millisecond, again and again
 *	newcomer        a process that is forked, executes a program and exits, and is waited for
 *	real-time probe a real-time task: counts the runnable tasks; it is late only if the kernel
 *	                gives it no CPU
 */
#ifndef KTEARDOWN_LATENCY_PROBE_H
#define KTEARDOWN_LATENCY_PROBE_H

#include "workload.h"

struct probe_results {
	int64_t longest_ns; /* the longest time between two runs of any probe */
	int64_t p50_ns, p99_ns; /* of the attempts of all probes (latency.h) */
	int64_t newcomer_ns, newcomer_worst_ns; /* median and longest */
	int64_t realtime_ns; /* the longest gap of the real-time probe */
	int64_t runnable; /* the largest number at once that the real-time probe saw */
};

/* Starts the probes, if any; they run and record nothing yet. Returns 0, or wl_fail()'s value. */
int latency_probes_start(struct trial *t, bool any);
/* Starts recording. Returns the time. */
int64_t latency_probes_from(void);
/*
 * Stops the probes, each after one more run, and summarizes what they recorded until then.
 * Returns 0, or wl_fail()'s value.
 */
int latency_probes_stop(struct trial *t, int64_t until_ns, struct probe_results *w);
/* Call this in cleanup(): kills all probes that are left. */
void latency_probes_drop(void);

#endif
