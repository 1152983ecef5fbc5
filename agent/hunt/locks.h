/* SPDX-License-Identifier: GPL-2.0 */
/* Which locks were held for longest, from /proc/lock_stat (CONFIG_LOCK_STAT). */
#ifndef KTEARDOWN_HUNT_LOCKS_H
#define KTEARDOWN_HUNT_LOCKS_H

#include "lib/lockstat.h"

/* How many locks a record has, and the most that their text takes. */
#define LOCKS_MOST 4
#define LOCKS_TEXT (LOCKS_MOST * 100)

/*
 * The locks of a file such as LOCKSTAT_FILE, which is closed, those that were held for longest
 * first; returns how many. If several classes have the same name, only the one that was held for
 * longest.
 */
int locks_read(FILE *file, struct lock_line locks[LOCKS_MOST]);
/* One lock a line: how long it was held in all, and at once, in which way, and its name. */
void locks_text(const struct lock_line *locks, int nr, char *text, size_t size);

#endif
