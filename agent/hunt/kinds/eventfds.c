// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/eventfd.h>

static int open_one(int64_t i)
{
	(void)i;
	return MUST(eventfd(0, 0));
}

KIND(eventfds, "epoll", "eventfd", .shape = OF_ONE, .limit = "nofile", .open = open_one);
