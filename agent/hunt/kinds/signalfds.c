// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/signalfd.h>

static int open_one(int64_t i)
{
	sigset_t set;

	(void)i;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return MUST(signalfd(-1, &set, 0));
}

KIND(signalfds, "epoll", "signalfd", .shape = OF_ONE, .limit = "nofile", .open = open_one);
