// SPDX-License-Identifier: GPL-2.0
#include "lockstat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
	strcpy(out->text, out->name);
	out->reading = ends_in(out->name, "-R");
	out->shared = out->reading || ends_in(out->name, "-W");
	if (out->shared)
		out->name[length - 2] = '\0';
	cut(out->name, '/');
	out->later = cut(out->name, '#');
}

static int64_t ns(double us)
{
	return (int64_t)(us * 1000 + 0.5);
}

bool lockstat_parse(const char *line, struct lock_line *out)
{
	double wait_us, longest_us, held_us;

	if (strlen(line) <= NAME_WIDTH || line[NAME_WIDTH] != ':' ||
	    strspn(line, " ") >= NAME_WIDTH)
		return false;
	/*
	 * Bounces, contentions; wait time: minimum, maximum, total, mean; bounces, acquisitions;
	 * hold time: minimum, maximum, total, mean.
	 */
	if (sscanf(line + NAME_WIDTH + 1,
		   "%*d %" SCNd64 " %*f %*f %lf %*f %*d %" SCNd64 " %*f %lf %lf",
		   &out->use.contended, &wait_us, &out->use.acquired, &longest_us, &held_us) != 5)
		return false;
	out->use.wait_ns = ns(wait_us);
	out->longest_ns = ns(longest_us);
	out->held_ns = ns(held_us);
	parse_name(line, out);
	return true;
}

int lockstat_read(FILE *file, struct lock_table *table)
{
	struct lock_line line;
	char *text = NULL;
	size_t size = 0;
	int error = file ? 0 : -errno;

	*table = (struct lock_table){0};
	while (!error && getline(&text, &size, file) > 0) {
		struct lock_line *lines;

		if (!lockstat_parse(text, &line))
			continue;
		lines = realloc(table->lines, (table->count + 1) * sizeof(line));
		if (lines) {
			table->lines = lines;
			table->lines[table->count++] = line;
		} else {
			error = -ENOMEM;
		}
	}
	free(text);
	if (file)
		fclose(file);
	return error;
}
