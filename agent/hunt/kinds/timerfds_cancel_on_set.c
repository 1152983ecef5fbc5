// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/timerfd.h>
#include <time.h>

static int open_one(int64_t i)
{
	struct itimerspec when = {.it_value = {time(NULL) + 100000, i}};
	int fd = MUST(timerfd_create(CLOCK_REALTIME, 0));

	MUST(timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &when, NULL));
	return fd;
}

KIND(timerfds_cancel_on_set, "timers", "timerfd that is cancelled when the clock is set",
     .shape = OF_ONE, .limit = "nofile", .timers = true, .open = open_one);
