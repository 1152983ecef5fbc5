// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/timers.h"

static void prepare(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL));
}

static void add(int64_t i)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};

	timer_make(i, CLOCK_MONOTONIC, &event, 0, 1);
}

KIND(posix_timers_expired, "timers", "POSIX timer whose signal is pending", .shape = OF_ONE,
     .limit = "sigpending", .exit = true, .prepare = prepare, .add = add, .remove = timer_remove);
