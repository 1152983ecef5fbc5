// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

static sigset_t set;

static void prepare(void)
{
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL));
}

static void add(int64_t i)
{
	MUST(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = (int)i}));
}

static void release(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++)
		MUST(sigwaitinfo(&set, NULL));
}

KIND(signals_queued, "timers", "signal in the queue of one process", .shape = ON_ONE,
     .limit = "sigpending", .exit = true, .call = "sigwaitinfo() for each", .prepare = prepare,
     .add = add, .release = release);
