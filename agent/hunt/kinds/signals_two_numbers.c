// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

static void prepare(void)
{
	sigset_t set;

	sigfillset(&set);
	MUST(sigprocmask(SIG_BLOCK, &set, NULL));
}

/* Half of them are of another signal, behind which those that are waited for are found. */
static void add(int64_t i)
{
	int signal = i < nr_objects / 2 ? SIGRTMAX : SIGRTMIN;

	MUST(sigqueue(getpid(), signal, (union sigval){.sival_int = (int)i}));
}

static void release(void)
{
	sigset_t set;
	int64_t i;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	for (i = nr_objects / 2; i < nr_objects; i++)
		MUST(sigwaitinfo(&set, NULL));
}

KIND(signals_two_numbers, "timers",
     "signal in the queue of one process, half of them of another number", .shape = ON_ONE,
     .limit = "sigpending", .call = "sigwaitinfo() for the younger half", .prepare = prepare,
     .add = add, .release = release);
