/* SPDX-License-Identifier: GPL-2.0 */
/* How often locks were taken and waited for, from /proc/lock_stat (CONFIG_LOCK_STAT). */
#ifndef KTEARDOWN_LOCKSTAT_H
#define KTEARDOWN_LOCKSTAT_H

#include "workload.h"

/* Since the guest's boot; reading and writing together. */
struct lock_use {
	int64_t acquired, contended, wait_ns;
};

/* One line of the file, which counts one side of one class. */
struct lock_line {
	char text[48]; /* the name as it is in the file */
	/* Without "#2" (the second class of the name), "/1" (nested), and the side. */
	char name[48];
	bool shared; /* it has two lines: one ends in -R, one in -W */
	bool later; /* it has "#2" or a higher number */
	struct lock_use use;
};

struct lock_table {
	struct lock_line *lines; /* to be freed by the caller */
	size_t count;
};

/* All classes. 0, or -errno (-ENOENT: a kernel without lock statistics). */
int lockstat_read(struct lock_table *table);

/* False if the line does not count a lock (a heading, a place of contention). */
bool lockstat_parse(const char *line, struct lock_line *out);

#endif
