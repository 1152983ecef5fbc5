/* SPDX-License-Identifier: GPL-2.0 */
/* How often locks were taken and waited for, out of /proc/lock_stat (CONFIG_LOCK_STAT). */
#ifndef KTEARDOWN_LOCKSTAT_H
#define KTEARDOWN_LOCKSTAT_H

#include "workload.h"

/* Since the guest's boot; what is taken for reading and for writing together. */
struct lock_use {
	int64_t acquired, contended, wait_ns;
};

/* Which of several classes of one name: another file may have a lock that is called the same. */
enum lock_which {
	LOCK_ANY, /* all of them, added up */
	LOCK_SHARED, /* those that were ever taken for reading: an rwlock, no spinlock */
	LOCK_LATER, /* all but the first that was used, since the boot */
};

struct lock_wanted {
	const char *name; /* as lockdep has it: what the lock's init was called with */
	enum lock_which which;
};

/* One line of the file that counts one side of one class. */
struct lock_line {
	char name[48]; /* without "#2" (the second class of the name), "/1" (nested), and the side
			*/
	bool shared; /* it has two lines: one that ends in -R, one in -W */
	bool later; /* it has a "#2" or more */
	struct lock_use use;
};

/*
 * uses[i] is what the classes that wanted[i] names were used, all zero where there is none. 0,
 * or -errno (-ENOENT: a kernel without lock statistics).
 */
int lockstat_read(const struct lock_wanted *wanted, size_t count, struct lock_use *uses);

/* False: the line is none that counts (a heading, a place of contention). */
bool lockstat_parse(const char *line, struct lock_line *out);

#endif
