/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Message threads and their workers: what schbench runs (C. Mason, 2016), with its words.
 *
 * A worker puts itself on its message thread's list, wakes that thread by its futex and
 * sleeps on a futex of its own. The message thread takes the list whole, notes the time
 * once, and wakes everybody on it. The wakeup latency is from that note until the worker
 * runs. Then comes the request: a sleep, and so many products of two matrices with the lock
 * of the worker's CPU held, which is spun for: a task that loses its CPU meanwhile makes
 * the next one there wait. The request latency is from before the sleep until after the lock.
 */
#ifndef KTEARDOWN_MESSAGE_THREADS_H
#define KTEARDOWN_MESSAGE_THREADS_H

#include "lib/histogram.h"
#include "workload.h"

#define MESSAGE_THREADS_INTERVALS 1000

struct message_threads_plan {
	int message_threads;
	int workers; /* of each message thread */
	int64_t sleep_us; /* of a request; 0: none */
	int64_t cache_kb; /* of the three matrices of a worker together */
	int64_t operations; /* products of a request */
	bool locking; /* the CPU's lock is held during them */
	int64_t runtime_ns, interval_ns;
};

struct message_threads_result {
	struct histogram wakeup, request; /* ns */
	int64_t took_ns; /* until the threads were told to stop */
	int intervals;
	int64_t rps[MESSAGE_THREADS_INTERVALS]; /* of each interval, rounded */
};

/*
 * Once in a process, which is full of threads until the runtime is up and ends after it: nothing
 * is freed. 0 or -errno.
 */
int message_threads_run(const struct message_threads_plan *plan,
			struct message_threads_result *result);

#endif
