// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/timers.h"

static void add(int64_t i)
{
	timer_make(i, CLOCK_PROCESS_CPUTIME_ID, NULL, 100000, i);
}

KIND(posix_timers_cpu, "timers", "POSIX timer of the CPU time of its process", .shape = OF_ONE,
     .limit = "sigpending", .exit = true, .add = add, .remove = timer_remove);
