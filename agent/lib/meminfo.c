// SPDX-License-Identifier: GPL-2.0
#include "meminfo.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int64_t meminfo_field(const char *text, const char *name)
{
	size_t len = strlen(name);

	while (text) {
		if (!strncmp(text, name, len) && text[len] == ':')
			return strtoll(text + len + 1, NULL, 10);
		text = strchr(text, '\n');
		if (text)
			text++;
	}
	return -1;
}

int meminfo_read(struct meminfo *m)
{
	char text[4096];
	int len;

	/* Reading the file sums up the per-CPU counters. Without it they can be wrong by a MB. */
	read_file("/proc/sys/vm/stat_refresh", text, sizeof(text));
	len = read_file("/proc/meminfo", text, sizeof(text));
	if (len < 0)
		return len;
	m->free = meminfo_field(text, "MemFree");
	m->available = meminfo_field(text, "MemAvailable");
	m->slab = meminfo_field(text, "Slab");
	m->percpu = meminfo_field(text, "Percpu");
	m->stacks = meminfo_field(text, "KernelStack");
	m->page_tables = meminfo_field(text, "PageTables");
	m->anonymous = meminfo_field(text, "AnonPages");
	return m->free < 0 || m->available < 0 ? -EIO : 0;
}
