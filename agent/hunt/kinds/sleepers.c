// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/waiters.h"

#include <time.h>

static void sleep_long(int64_t i)
{
	struct timespec time = {1000, i};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

static void make(void)
{
	waiters_make(NULL, sleep_long);
}

KIND(sleepers, "timers", "process in clock_nanosleep()", .shape = OWNERS, .limit = "nproc",
     .timers = true, .make = make, WAITERS_KILLED);
