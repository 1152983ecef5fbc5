// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/waiters.h"

static int ends[2];

static void wait_for_it(int64_t i)
{
	(void)i;
	MUST(write(ends[1], "x", 1));
}

static void make(void)
{
	static char page[4096];

	MUST(pipe(ends));
	MUST(fcntl(ends[1], F_SETFL, O_NONBLOCK));
	while (write(ends[1], page, sizeof(page)) > 0)
		;
	MUST(fcntl(ends[1], F_SETFL, 0));
	waiters_make(NULL, wait_for_it);
}

KIND(pipe_writers, "files", "process that waits for room in one pipe", .shape = ON_ONE,
     .limit = "nproc", .make = make, WAITERS_KILLED);
