// SPDX-License-Identifier: GPL-2.0
#include "hunt/locks.h"

#include <stdlib.h>
#include <string.h>

/*
 * Whether this is a lock, and not something that lockdep tracks as one: the read side of RCU, and
 * work items and timers, whose names begin with a bracket. No task waits for these to be unlocked.
 */
static bool is_lock(const char *name)
{
	static const char *const others[] = {"(", "rcu_read_lock", "rcu_callback", "fs_reclaim"};
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (!strncmp(name, others[i], strlen(others[i])))
			return false;
	return true;
}

static bool same(const struct lock_line *a, const struct lock_line *b)
{
	return a->reading == b->reading && !strcmp(a->name, b->name);
}

static int by_time(const void *a, const void *b)
{
	int64_t one = ((const struct lock_line *)a)->held_ns;
	int64_t other = ((const struct lock_line *)b)->held_ns;

	return (one < other) - (one > other);
}

int locks_read(FILE *file, struct lock_line locks[LOCKS_MOST])
{
	struct lock_table all;
	int nr = 0, j;

	/* What was read before an error is true, too. */
	lockstat_read(file, &all);
	if (all.count)
		qsort(all.lines, all.count, sizeof(*all.lines), by_time);
	for (size_t i = 0; i < all.count && nr < LOCKS_MOST; i++) {
		if (!is_lock(all.lines[i].name))
			continue;
		for (j = 0; j < nr && !same(&locks[j], &all.lines[i]); j++)
			;
		if (j == nr)
			locks[nr++] = all.lines[i];
	}
	free(all.lines);
	return nr;
}

void locks_text(const struct lock_line *locks, int nr, char *text, size_t size)
{
	size_t length = 0;
	int i;

	text[0] = '\0';
	for (i = 0; i < nr && length < size; i++)
		length += snprintf(text + length, size - length, "%s%lld %lld %s %s", i ? "\n" : "",
				   (long long)locks[i].held_ns, (long long)locks[i].longest_ns,
				   locks[i].reading ? "reading" : "writing", locks[i].name);
}
