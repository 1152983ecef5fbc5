// SPDX-License-Identifier: GPL-2.0
#include "hunt/locks.h"

#include <stdlib.h>
#include <string.h>

#include "workloads/swapfree/lockstat.h"

static int64_t ns(double us)
{
	return (int64_t)(us * 1000 + 0.5);
}

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

static bool parse(const char *text, struct lock_held *out)
{
	double longest_us, held_us;
	struct lock_line line;

	if (!lockstat_parse(text, &line) || !is_lock(line.name))
		return false;
	/*
	 * Bounces, contentions; wait time: minimum, maximum, total, mean; bounces, acquisitions;
	 * hold time: minimum, maximum, total, mean.
	 */
	if (sscanf(text + strspn(text, " ") + strlen(line.text),
		   ":%*d %*d %*f %*f %*f %*f %*d %*d %*f %lf %lf", &longest_us, &held_us) != 2)
		return false;
	strcpy(out->name, line.name);
	out->reading = line.shared && line.text[strlen(line.text) - 1] == 'R';
	out->held_ns = ns(held_us);
	out->longest_ns = ns(longest_us);
	return true;
}

static bool same(const struct lock_held *a, const struct lock_held *b)
{
	return a->reading == b->reading && !strcmp(a->name, b->name);
}

static int by_time(const void *a, const void *b)
{
	int64_t one = ((const struct lock_held *)a)->held_ns;
	int64_t other = ((const struct lock_held *)b)->held_ns;

	return (one < other) - (one > other);
}

int locks_read(FILE *f, struct lock_held locks[LOCKS_MOST])
{
	struct lock_held *all = NULL, lock;
	int nr_all = 0, nr = 0, i, j;
	char *text = NULL;
	size_t size = 0;

	while (getline(&text, &size, f) > 0) {
		struct lock_held *more;

		if (!parse(text, &lock))
			continue;
		more = realloc(all, (nr_all + 1) * sizeof(*all));
		if (!more)
			break;
		all = more;
		all[nr_all++] = lock;
	}
	if (nr_all)
		qsort(all, nr_all, sizeof(*all), by_time);
	for (i = 0; i < nr_all && nr < LOCKS_MOST; i++) {
		for (j = 0; j < nr && !same(&locks[j], &all[i]); j++)
			;
		if (j == nr)
			locks[nr++] = all[i];
	}
	free(text);
	free(all);
	return nr;
}

void locks_text(const struct lock_held *locks, int nr, char *text, size_t size)
{
	size_t length = 0;
	int i;

	text[0] = '\0';
	for (i = 0; i < nr && length < size; i++)
		length += snprintf(text + length, size - length, "%s%lld %lld %s %s", i ? "\n" : "",
				   (long long)locks[i].held_ns, (long long)locks[i].longest_ns,
				   locks[i].reading ? "reading" : "writing", locks[i].name);
}
