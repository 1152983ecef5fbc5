// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "core/agent.h"
#include "snapshot.h"

static const struct {
	const char *path, *name;
} files[SNAPSHOT_FILES] = {
	{"/proc/meminfo", "meminfo"},
	{"/proc/vmstat", "vmstat"},
	{"/proc/slabinfo", "slabinfo"},
	{"/sys/fs/cgroup/cgroup.stat", "cgroup.stat"},
	{"/sys/fs/cgroup/cpu.stat", "cpu.stat"},
	{"/sys/fs/cgroup/memory.stat", "memory.stat"},
};

void snapshot_init(struct snapshot *s)
{
	memset(s, 0, sizeof(*s));
}

void snapshot_take(struct snapshot *s)
{
	char text[64];
	int i;

	/* Sums up the per-CPU counters of vmstat and meminfo, as lib/meminfo.c does. */
	read_file("/proc/sys/vm/stat_refresh", text, sizeof(text));
	for (i = 0; i < SNAPSHOT_FILES; i++)
		if (read_file(files[i].path, s->text[i], sizeof(s->text[i])) < 0)
			s->text[i][0] = '\0';
}

bool snapshot_next(const char **text, char name[SNAPSHOT_NAME], int64_t *value)
{
	const char *line = *text, *end;
	long long number;
	size_t len;
	int fields;

	/* A line without its newline is cut, and so may be its number. */
	while ((end = strchr(line, '\n'))) {
		/* Other lines are headings, such as both of slabinfo. */
		fields = sscanf(line, "%95s %lld", name, &number);
		len = strcspn(line, " \t\n");
		if (fields == 2 && len < SNAPSHOT_NAME && line + len < end && *name != '#') {
			if (len > 1 && name[len - 1] == ':')
				name[len - 1] = '\0';
			*value = number;
			*text = end + 1;
			return true;
		}
		line = end + 1;
	}
	*text = line + strlen(line);
	return false;
}

/* The counter of this name; 0 if the snapshot lacks it. hint: its likely place, then the next. */
static bool find(const char *all, const char **hint, const char *wanted, int64_t *value)
{
	const char *text = *hint;
	char name[SNAPSHOT_NAME];
	bool again = true;

	for (;;) {
		if (!snapshot_next(&text, name, value)) {
			if (!again)
				break;
			text = all;
			again = false;
		} else if (!strcmp(name, wanted)) {
			*hint = text;
			return true;
		}
	}
	*value = 0;
	return false;
}

static void report(const char *file, const char *name, int64_t before, int64_t after, int trial,
		   int repetition)
{
	struct line l;

	line_begin(&l, "delta");
	line_int(&l, "trial", trial);
	line_int(&l, "repetition", repetition);
	line_str(&l, "file", file);
	line_str(&l, "name", name);
	line_int(&l, "before", before);
	line_int(&l, "after", after);
	line_send(&l);
}

void snapshot_report(const struct snapshot *before, const struct snapshot *after, int trial,
		     int repetition)
{
	char name[SNAPSHOT_NAME];
	int64_t was, is;
	int i;

	for (i = 0; i < SNAPSHOT_FILES; i++) {
		const char *old = before->text[i], *new = after->text[i];
		const char *at = new, *hint = old;

		/* What the script unmounted, or mounted over, has not become 0. */
		if (*old && !*new)
			continue;
		while (snapshot_next(&at, name, &is)) {
			find(old, &hint, name, &was);
			if (was != is)
				report(files[i].name, name, was, is, trial, repetition);
		}
		/* Those that are gone: the caches of slabs that were destroyed. */
		for (at = old, hint = new; snapshot_next(&at, name, &was);)
			if (!find(new, &hint, name, &is) && was)
				report(files[i].name, name, was, 0, trial, repetition);
	}
}
