// SPDX-License-Identifier: GPL-2.0
#include "lockstat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "/proc/lock_stat"
/* kernel/locking/lockdep_proc.c, seq_stats(): the name, right-aligned, and a colon. */
#define NAME_WIDTH 40

static bool ends_in(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);

	return length >= wanted && !strcmp(text + length - wanted, end);
}

/* Removes "/1" or "#2" from the end of the name. */
static bool cut(char *name, char mark)
{
	char *at = strrchr(name, mark);

	if (!at || !at[1] || at[1 + strspn(at + 1, "0123456789")])
		return false;
	*at = '\0';
	return true;
}

static void parse_name(const char *line, struct lock_line *out)
{
	size_t blanks = strspn(line, " ");
	size_t length = NAME_WIDTH - blanks;

	memcpy(out->name, line + blanks, length);
	out->name[length] = '\0';
	out->shared = ends_in(out->name, "-R") || ends_in(out->name, "-W");
	if (out->shared)
		out->name[length - 2] = '\0';
	cut(out->name, '/');
	out->later = cut(out->name, '#');
}

bool lockstat_parse(const char *line, struct lock_line *out)
{
	double wait_us;

	if (strlen(line) <= NAME_WIDTH || line[NAME_WIDTH] != ':' ||
	    strspn(line, " ") >= NAME_WIDTH)
		return false;
	/*
	 * Bounces, contentions; wait time: minimum, maximum, total, mean; bounces, acquisitions;
	 * hold time.
	 */
	if (sscanf(line + NAME_WIDTH + 1, "%*d %" SCNd64 " %*f %*f %lf %*f %*d %" SCNd64,
		   &out->use.contended, &wait_us, &out->use.acquired) != 3)
		return false;
	out->use.wait_ns = (int64_t)(wait_us * 1000 + 0.5);
	parse_name(line, out);
	return true;
}

static bool is_wanted(const struct lock_wanted *wanted, const struct lock_line *line)
{
	if (strcmp(wanted->name, line->name))
		return false;
	return wanted->which == LOCK_ANY || (wanted->which == LOCK_SHARED && line->shared) ||
	       (wanted->which == LOCK_LATER && line->later);
}

static void add(const struct lock_wanted *wanted, size_t count, struct lock_use *uses,
		const struct lock_line *line)
{
	for (size_t i = 0; i < count; i++) {
		if (!is_wanted(&wanted[i], line))
			continue;
		uses[i].acquired += line->use.acquired;
		uses[i].contended += line->use.contended;
		uses[i].wait_ns += line->use.wait_ns;
	}
}

int lockstat_read(const struct lock_wanted *wanted, size_t count, struct lock_use *uses)
{
	FILE *file = fopen(FILE_NAME, "re");
	struct lock_line line;
	char *text = NULL;
	size_t size = 0;

	if (!file)
		return -errno;
	memset(uses, 0, count * sizeof(*uses));
	while (getline(&text, &size, file) > 0)
		if (lockstat_parse(text, &line))
			add(wanted, count, uses, &line);
	free(text);
	fclose(file);
	return 0;
}
