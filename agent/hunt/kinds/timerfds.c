// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/timerfd.h>

static int open_one(int64_t i)
{
	struct itimerspec when = {.it_value = {1000, i}};
	int fd = MUST(timerfd_create(CLOCK_MONOTONIC, 0));

	MUST(timerfd_settime(fd, 0, &when, NULL));
	return fd;
}

KIND(timerfds, "timers", "timerfd that is armed", .shape = OF_ONE, .limit = "nofile",
     .timers = true, .open = open_one);
