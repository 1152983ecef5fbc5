/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Workers: tasks in the states that a freezer meets, which tell when they ran.
 *
 * A worker that runs notes the time in a cell of shared memory, and the longest
 * silence between two such notes. What sleeps is woken by a timer of its own
 * every few milliseconds: a worker that should be frozen and is not breaks the
 * silence, whatever it sleeps in.
 */
#ifndef KTEARDOWN_WORKERS_H
#define KTEARDOWN_WORKERS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "workload.h"

#define WORKER_EXIT_OK 40 /* exit code of a worker that lost nothing */
#define WORKER_TASKS 2 /* a worker may be two tasks, each with a cell of its own */

/* One task's notes. Written by that task only. */
struct activity {
	_Atomic int64_t last, from, to; /* latest note; the longest silence while watched */
	_Atomic uint64_t notes;
	_Atomic int tid;
};

/* What the agent tells all workers, in memory that they share. */
struct orders {
	_Atomic bool watch; /* silences count */
	_Atomic bool hold; /* the tracee of "tracer_in_wait" is not to be continued */
	_Atomic int64_t timer_ms; /* when worker_continued is continued, from its start */
	_Atomic bool finish; /* check what you have and exit */
};

struct worker_kind {
	const char *name;
	/* Returns when told to finish: true if nothing was lost. */
	bool (*body)(struct activity *c);
	int activities;
};

/* Ended by a NULL name. */
extern const struct worker_kind worker_kinds[];

/* Stopped (T) from its start until timer_ms have passed; to be started last. */
extern const struct worker_kind worker_continued;

/* Where the orders are; set before the first worker_start(). */
extern struct orders *worker_orders;

/* A child that runs the kind's body, with its own children in a process group of its own. */
pid_t worker_start(const struct worker_kind *kind, struct activity *activities);

/* In a worker or another child: a signal to itself after ms, then every period_ms (0: once). */
void signal_after(int signo, int64_t ms, int64_t period_ms);

#endif
