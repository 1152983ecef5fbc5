/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Witnesses of how usable the system is: ordinary processes that want to run a
 * little, and note when they could.
 *
 *	probe     one on each CPU, bound to it: sleeps a millisecond, and again
 *	newcomer  a process that is forked, executes a program and exits, and is waited for
 *	gauge     a real-time task: counts the runnable tasks, and is itself late only
 *	          where the kernel lets go of no CPU at all
 */
#ifndef KTEARDOWN_LATENCY_PROBE_H
#define KTEARDOWN_LATENCY_PROBE_H

#include "workload.h"

struct probe_results {
	int64_t longest_ns; /* of any probe, between two runs */
	int64_t p50_ns, p99_ns; /* of the attempts of all probes (latency.h) */
	int64_t newcomer_ns, newcomer_worst_ns; /* median, longest */
	int64_t realtime_ns; /* the longest gap of the gauge */
	int64_t runnable; /* the most at once, of all that the gauge saw */
};

/* Start them, if any; each runs, unheard. 0, or wl_fail()'s value. */
int latency_probes_start(struct trial *t, bool any);
/* What they see counts from here on. Returns the time. */
int64_t latency_probes_from(void);
/* End them, each after one more run, and sum up what they saw until then. 0 or wl_fail()'s value.
 */
int latency_probes_stop(struct trial *t, int64_t until_ns, struct probe_results *w);
/* In cleanup(): whatever was started is gone. */
void latency_probes_drop(void);

#endif
