/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Pairs of processes and a kernel lock, all with ordinary system calls: one side takes the
 * lock again and again and holds it for long, the other side needs it briefly.
 */
#ifndef KTEARDOWN_CONTENTION_H
#define KTEARDOWN_CONTENTION_H

#include "openloop.h"

struct contention {
	const char *name;
	int64_t every_us; /* how often the other side can take the lock without a queue */
	/* In the agent. 0 or -errno. */
	int (*make)(void);
	/* The side that needs the lock; it is a process of its own. */
	struct openloop_work need;
	/*
	 * In a lock holder, which was started after the other side (its pid). False if it cannot.
	 */
	bool (*begin)(int other);
	/*
	 * Takes the lock, holds it for long and releases it; is called again at once. False if it
	 * failed.
	 */
	bool (*hold)(void);
	/* In the agent, after the other processes are gone. */
	void (*clear)(void);
};

/* Ended by a NULL name. */
extern const struct contention contentions[];

#endif
