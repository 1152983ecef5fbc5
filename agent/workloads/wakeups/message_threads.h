/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Message threads and their workers: the load of schbench (C. Mason, 2016), with its
 * terms.
 *
 * A worker puts itself on its message thread's list, wakes that thread through its futex
 * and sleeps on a futex of its own. The message thread takes the whole list, reads the
 * clock once, and wakes every worker on the list. The wakeup latency is the time from that
 * reading until the worker runs.
 *
 * The request follows: a sleep, then a number of products of two matrices with the lock of
 * the worker's CPU held. Other tasks spin for this lock: if a task is preempted while it
 * holds the lock, the next task on that CPU waits. The request latency is from before the
 * sleep until the lock was released.
 */
#ifndef KTEARDOWN_MESSAGE_THREADS_H
#define KTEARDOWN_MESSAGE_THREADS_H

#include "lib/histogram.h"
#include "workload.h"

#define MESSAGE_THREADS_INTERVALS 1000

struct message_threads_plan {
	int message_threads;
	int workers; /* of each message thread */
	int64_t sleep_us; /* of a request; 0: no sleep */
	int64_t cache_kb; /* of the three matrices of a worker together */
	int64_t operations; /* products of a request */
	bool locking; /* the lock of the CPU is held during the products */
	int64_t runtime_ns, interval_ns;
};

struct message_threads_result {
	struct histogram wakeup, request; /* ns */
	int64_t took_ns; /* until the threads were stopped */
	int intervals;
	int64_t rps[MESSAGE_THREADS_INTERVALS]; /* of each interval, rounded */
};

/*
 * Call this once, in a process of its own: nothing is freed, and the process must exit
 * afterwards. 0 or -errno.
 */
int message_threads_run(const struct message_threads_plan *plan,
			struct message_threads_result *result);

#endif
