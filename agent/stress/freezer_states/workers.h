/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Workers: tasks in the states that a freezer meets, which record when they ran.
 *
 * A worker that runs writes the time to its entry in shared memory, and the longest gaps
 * between two such times. A worker that sleeps is woken by a timer of its own every few
 * milliseconds: so a worker that should be frozen and is not ends the gap, in whatever
 * state it sleeps.
 */
#ifndef KTEARDOWN_WORKERS_H
#define KTEARDOWN_WORKERS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "workload.h"

#define WORKER_EXIT_OK 40 /* exit code of a worker that lost nothing */
#define WORKER_TASKS 2 /* a worker may consist of two tasks, each with an entry of its own */

/*
 * So many gaps are kept. A busy host keeps a worker from running at other times, too, and for
 * longer than the window if the kernel's delay was shorter than it was asked for.
 */
#define WORKER_GAPS 16

/* When one task ran. Written by that task only. */
struct activity {
	_Atomic int64_t last;
	/* The longest gaps while gaps were recorded, in no order. */
	struct gap {
		_Atomic int64_t from, to;
	} gaps[WORKER_GAPS];
	_Atomic uint64_t notes;
	_Atomic int tid;
};

/* What the agent orders all workers to do, in memory that they share. */
struct orders {
	_Atomic bool watch; /* gaps are recorded */
	_Atomic bool hold; /* the tracee of "tracer_in_wait" must not be continued */
	_Atomic int64_t timer_ms; /* when worker_continued is continued, in ms after its start */
	_Atomic bool finish; /* check the results and exit */
};

struct worker_kind {
	const char *name;
	/* Returns when it is ordered to finish: true if nothing was lost. */
	bool (*body)(struct activity *c);
	int activities;
};

/* Ended by a NULL name. */
extern const struct worker_kind worker_kinds[];

/* Stopped (T) from its start until timer_ms have passed; start it last. */
extern const struct worker_kind worker_continued;

/* The orders; set this before the first worker_start(). */
extern struct orders *worker_orders;

/*
 * Starts a child that runs the kind's body; it and its own children are in a process group
 * of their own.
 */
pid_t worker_start(const struct worker_kind *kind, struct activity *activities);

/*
 * Called in a worker or another child: sends a signal to itself after ms, then every
 * period_ms (0: once).
 */
void signal_after(int signo, int64_t ms, int64_t period_ms);

#endif
