/* SPDX-License-Identifier: GPL-2.0 */
/* How often locks were taken and waited for, from /proc/lock_stat (CONFIG_LOCK_STAT). */
#ifndef KTEARDOWN_LOCKSTAT_H
#define KTEARDOWN_LOCKSTAT_H

#include "workload.h"

/* Since the guest's boot; reading and writing together. */
struct lock_use {
	int64_t acquired, contended, wait_ns;
};

/* Which of several classes with one name: locks in different files may have the same name. */
enum lock_which {
	LOCK_ANY, /* all of them, added up */
	LOCK_SHARED, /* those that were ever taken for reading: rwlocks, not spinlocks */
	LOCK_LATER, /* all but the first class of the name that was used since the boot */
};

struct lock_wanted {
	const char *name; /* as lockdep has it: the argument of the lock's init function */
	enum lock_which which;
};

/* One line of the file, which counts one side of one class. */
struct lock_line {
	/* Without "#2" (the second class of the name), "/1" (nested), and the side. */
	char name[48];
	bool shared; /* it has two lines: one ends in -R, one in -W */
	bool later; /* it has "#2" or a higher number */
	struct lock_use use;
};

/*
 * uses[i] becomes the use of the classes that wanted[i] selects, zero if no class matches.
 * 0, or -errno (-ENOENT: a kernel without lock statistics).
 */
int lockstat_read(const struct lock_wanted *wanted, size_t count, struct lock_use *uses);

/* False if the line does not count a lock (a heading, a place of contention). */
bool lockstat_parse(const char *line, struct lock_line *out);

#endif
