// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/waiters.h"

#include <poll.h>

static int ends[2];

static void wait_for_it(int64_t i)
{
	struct pollfd on = {.fd = ends[0], .events = POLLIN};

	(void)i;
	poll(&on, 1, -1);
}

static void make(void)
{
	MUST(pipe(ends));
	waiters_make(NULL, wait_for_it);
}

KIND(pollers, "epoll", "process whose poll() waits for one pipe", .shape = ON_ONE, .limit = "nproc",
     .make = make, WAITERS_KILLED);
