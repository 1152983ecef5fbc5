// SPDX-License-Identifier: GPL-2.0
#include "hunt/free_memory.h"

#include <stdio.h>
#include <sys/sysinfo.h>
#include <unistd.h>

int64_t free_memory_kb(void)
{
	FILE *f = fopen("/proc/zoneinfo", "re");
	int64_t page_kb = sysconf(_SC_PAGESIZE) / 1024;
	long long pages, kb = 0;
	struct sysinfo info;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %lld", &pages) == 1)
			kb += pages * page_kb;
	if (f)
		fclose(f);
	sysinfo(&info);
	return kb + (int64_t)info.freeram * info.mem_unit / 1024;
}
