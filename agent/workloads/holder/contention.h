/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel locks that one side holds for long, over and over, and another side needs
 * for a moment, all of it through ordinary system calls.
 */
#ifndef KTEARDOWN_CONTENTION_H
#define KTEARDOWN_CONTENTION_H

#include "openloop.h"

struct contention {
	const char *name;
	int64_t every_us; /* how often the other side can need the lock without queueing up */
	/* In the agent. 0 or -errno. */
	int (*make)(void);
	/* The side that needs the lock; a process of its own. */
	struct openloop_work need;
	/* In a holder, which was started after the other side (its pid). False: it cannot. */
	bool (*begin)(int other);
	/* Take the lock for long, let go of it, and do it over again soon. False: it failed. */
	bool (*hold)(void);
	/* In the agent; the other processes are gone. */
	void (*clear)(void);
};

/* Ended by a NULL name. */
extern const struct contention contentions[];

#endif
