/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Operations that fall due at fixed times, whatever became of those before them: an
 * open loop. A closed one asks again only when it was answered, and so hardly asks
 * while it is kept waiting ("coordinated omission", G. Tene).
 *
 * A process with several threads does them. Each takes the next operation, waits
 * until it is due, and does it; so a stalled operation delays others only where
 * all threads are stalled.
 */
#ifndef KTEARDOWN_OPENLOOP_H
#define KTEARDOWN_OPENLOOP_H

#include "lib/latency.h"
#include "workload.h"

struct openloop_work {
	/* In the process, before its threads. False: it cannot. May be NULL. */
	bool (*prepare)(void);
	/* One operation, in one of the threads. False: it failed. */
	bool (*operate)(int64_t thread, int64_t number);
};

/* Start the process; it and its threads wait. 0, or wl_fail()'s value. */
int openloop_start(struct trial *t, const struct openloop_work *work, int64_t threads,
		   int64_t operations, int64_t every_ns);
/* The process, once it was started. */
int openloop_pid(void);
/* The first operation is due at this time. */
void openloop_go(int64_t from_ns);
/* How many are done; -1 where the process is gone before its time. */
int64_t openloop_done(void);
/* How many of them failed. */
int64_t openloop_failed(void);
/*
 * When each operation was due and done, in their order, until_ns for what is not
 * done: how many those are. Room for all operations.
 */
int64_t openloop_times(struct operation *operations, int64_t until_ns);
/* The process is the caller's to reap. */
void openloop_kill(void);
/* In cleanup(): the process is killed, what it noted is forgotten. */
void openloop_drop(void);

#endif
