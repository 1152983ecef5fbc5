// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/perf.h"

static int leader;

static void prepare(void)
{
	leader = perf_clock(0, -1, -1);
}

static int open_one(int64_t i)
{
	(void)i;
	return perf_clock(0, -1, leader);
}

static void release(void)
{
	MUST(close(leader));
}

KIND(perf_group, "perf", "event in one group of events", .shape = ON_ONE, .limit = "nofile",
     .needs = "CONFIG_PERF_EVENTS", .privileged = true, .call = "close(leader)", .prepare = prepare,
     .open = open_one, .release = release);
