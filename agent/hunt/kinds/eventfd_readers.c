// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/waiters.h"

#include <sys/eventfd.h>

static int fd;

static void wait_for_it(int64_t i)
{
	uint64_t value;

	(void)i;
	MUST(read(fd, &value, sizeof(value)));
}

static void make(void)
{
	fd = MUST(eventfd(0, 0));
	waiters_make(NULL, wait_for_it);
}

KIND(eventfd_readers, "epoll", "process whose read() waits for one eventfd", .shape = ON_ONE,
     .limit = "nproc", .make = make, WAITERS_KILLED);
