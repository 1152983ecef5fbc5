// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/threads.h"

static void make(void)
{
	threads_make(NULL);
}

KIND(threads, "processes", "thread of one process that is killed", .shape = OF_ONE,
     .limit = "nproc", .exit = true, .make = make);
