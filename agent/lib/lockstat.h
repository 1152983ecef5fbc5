/* SPDX-License-Identifier: GPL-2.0 */
/* How often locks were taken and waited for, and how long held (CONFIG_LOCK_STAT). */
#ifndef KTEARDOWN_LOCKSTAT_H
#define KTEARDOWN_LOCKSTAT_H

#include <stdio.h>

#include "workload.h"

#define LOCKSTAT_FILE "/proc/lock_stat"

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
	bool reading; /* this is the line that ends in -R */
	bool later; /* it has "#2" or a higher number */
	struct lock_use use;
	int64_t held_ns, longest_ns; /* in all, and at once */
};

struct lock_table {
	struct lock_line *lines; /* to be freed by the caller */
	size_t count;
};

/*
 * All classes in a file such as LOCKSTAT_FILE, which is closed. 0, or -errno; file may be NULL,
 * what fopen() gives for a kernel without lock statistics (-ENOENT).
 */
int lockstat_read(FILE *file, struct lock_table *table);

/* False if the line does not count a lock (a heading, a place of contention). */
bool lockstat_parse(const char *line, struct lock_line *out);

#endif
