/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tasks wait for: for each time that a task gives up its CPU without being able to run, its
 * call chain and how long it took until it ran again. It is perf's count of context switches, for
 * all tasks, so it needs neither tracepoints nor performance counters.
 */
#ifndef KTEARDOWN_WAITS_H
#define KTEARDOWN_WAITS_H

#include "lib/sampler.h"
#include "lib/stacks.h"

/* A task that waits. */
struct open_wait {
	int tid; /* 0: a free entry */
	int64_t from_ns;
	int nr; /* of its chain; 0: it does not wait */
	uint64_t *chain; /* innermost first */
};

struct open_waits {
	struct open_wait *all; /* a hash table with open addressing */
	size_t nr, room; /* room is a power of two */
};

/* 0, or -ENOMEM. */
int open_waits_begin(struct open_waits *o, int tid, int64_t from_ns, const uint64_t *chain, int nr);
/* The task runs again: the entry with its chain, NULL if it did not wait. */
struct open_wait *open_waits_end(struct open_waits *o, int tid);
void open_waits_free(struct open_waits *o);

/* Opens the events on all online CPUs; they do not count yet. 0 or -errno. */
int waits_open(void);
void waits_start(void);
/* Reads what has come since. Often enough, no ring becomes full. */
void waits_read(void);
/* The last waits end here, whatever becomes of them. */
void waits_stop(void);
/* Writes the records of this repetition. 0 or -errno. */
int waits_report(int trial, int repetition);
void waits_close(void);

#endif
