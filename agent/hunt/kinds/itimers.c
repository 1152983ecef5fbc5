// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/waiters.h"

#include <sys/time.h>

static void arm(int64_t i)
{
	struct itimerval when = {.it_value = {1000, i % 1000000}};

	MUST(setitimer(ITIMER_REAL, &when, NULL));
}

static void make(void)
{
	waiters_make(arm, NULL);
}

KIND(itimers, "timers", "process with an interval timer", .shape = OWNERS, .limit = "nproc",
     .timers = true, .make = make, WAITERS_KILLED);
