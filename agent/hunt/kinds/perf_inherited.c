// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/perf.h"
#include "hunt/lib/waiters.h"

static void make(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .inherit = 1,
				       .exclude_kernel = 1};

	perf_open(&attr, 0, -1, -1);
	waiters_make(NULL, NULL);
}

KIND(perf_inherited, "perf", "process that inherited one event", .shape = ON_ONE, .limit = "nproc",
     .needs = "CONFIG_PERF_EVENTS", .privileged = true, .make = make, WAITERS_KILLED);
