/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An open loop: operations that are due at fixed times, independent of what became of the
 * earlier ones. A closed loop makes the next request only after an answer, and so makes
 * almost no requests while it waits ("coordinated omission", G. Tene).
 *
 * A process with several threads executes them. Each thread takes the next operation,
 * waits until it is due, and executes it; so a stalled operation delays others only if all
 * threads are stalled.
 */
#ifndef KTEARDOWN_OPENLOOP_H
#define KTEARDOWN_OPENLOOP_H

#include "lib/latency.h"
#include "workload.h"

struct openloop_work {
	/* Called in the process, before its threads. False if it cannot. May be NULL. */
	bool (*prepare)(void);
	/* One operation, in one of the threads. False if it failed. */
	bool (*operate)(int64_t thread, int64_t number);
};

/* Starts the process; it and its threads wait. Returns 0, or wl_fail()'s value. */
int openloop_start(struct trial *t, const struct openloop_work *work, int64_t threads,
		   int64_t operations, int64_t every_ns);
/* The process, after it was started. */
int openloop_pid(void);
/* Starts the threads; the first operation is due at this time. */
void openloop_go(int64_t from_ns);
/* How many operations are done; -1 if the process exited too early. */
int64_t openloop_done(void);
/* How many of the operations failed. */
int64_t openloop_failed(void);
/*
 * Writes when each operation was due and when it was done, in their order, and until_ns
 * for those that are not done; returns how many those are. There must be room for all
 * operations.
 */
int64_t openloop_times(struct operation *operations, int64_t until_ns);
/* Kills the process; the caller reaps it. */
void openloop_kill(void);
/* Call this in cleanup(): kills the process and frees the shared memory. */
void openloop_drop(void);

#endif
