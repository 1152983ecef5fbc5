// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/perf.h"

static int open_one(int64_t i)
{
	(void)i;
	return perf_clock(-1, 0, -1);
}

KIND(perf_cpu_events, "perf", "event of one CPU", .shape = ON_ONE, .limit = "nofile",
     .needs = "CONFIG_PERF_EVENTS", .privileged = true, .open = open_one);
