// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/perf.h"

static void **at;

static void prepare(void)
{
	put_file("/proc/sys/kernel/perf_event_mlock_kb", "10000000");
	at = array(sizeof(*at));
}

static void add(int64_t i)
{
	int fd = perf_clock(0, -1, -1);

	at[i] = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST((long)at[i]);
	close(fd);
}

static void remove_one(int64_t i)
{
	MUST(munmap(at[i], 8192));
}

KIND(perf_buffers, "perf", "event of one task with a mapped buffer", .shape = OF_ONE,
     .limit = "max_map_count", .needs = "CONFIG_PERF_EVENTS", .privileged = true, .exit = true,
     .prepare = prepare, .add = add, .remove = remove_one);
