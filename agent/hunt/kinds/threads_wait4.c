// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/threads.h"

static pid_t other;

static void wait_for_child(void)
{
	waitpid(other, NULL, 0);
}

static void make(void)
{
	other = child(0, true);
	if (!other)
		wait_to_be_killed();
	threads_make(wait_for_child);
}

KIND(threads_wait4, "processes",
     "thread that waits in wait4() for a child of another; the process is killed", .shape = ON_ONE,
     .limit = "nproc", .exit = true, .make = make);
