// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/timers.h"

static void add(int64_t i)
{
	timer_make(i, CLOCK_MONOTONIC, NULL, 1000, i);
}

KIND(posix_timers, "timers", "POSIX timer that is armed", .shape = OF_ONE, .limit = "sigpending",
     .timers = true, .exit = true, .add = add, .remove = timer_remove);
