/* SPDX-License-Identifier: GPL-2.0 */
/* Which locks were held for longest, from /proc/lock_stat (CONFIG_LOCK_STAT). */
#ifndef KTEARDOWN_HUNT_LOCKS_H
#define KTEARDOWN_HUNT_LOCKS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How many locks a record has, and the most that their text takes. */
#define LOCKS_MOST 4
#define LOCKS_TEXT (LOCKS_MOST * 100)

/* One class of locks, held in one way. */
struct lock_held {
	char name[48]; /* as lockdep has it: the argument of the lock's init function */
	bool reading; /* together with others; otherwise alone */
	int64_t held_ns, longest_ns; /* in all, and at once */
};

/*
 * The locks of a file such as /proc/lock_stat, those that were held for longest first; returns how
 * many. If several classes have the same name, only the one that was held for longest.
 */
int locks_read(FILE *f, struct lock_held locks[LOCKS_MOST]);
/* One lock a line: how long it was held in all, and at once, in which way, and its name. */
void locks_text(const struct lock_held *locks, int nr, char *text, size_t size);

#endif
