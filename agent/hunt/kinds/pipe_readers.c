// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/waiters.h"

static int ends[2];

static void wait_for_it(int64_t i)
{
	char c;

	(void)i;
	MUST(read(ends[0], &c, 1));
}

static void make(void)
{
	MUST(pipe(ends));
	waiters_make(NULL, wait_for_it);
}

KIND(pipe_readers, "files", "process that waits for a byte of one pipe", .shape = ON_ONE,
     .limit = "nproc", .make = make, WAITERS_KILLED);
