// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/waiters.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

static int set;

static void wait_for_it(int64_t i)
{
	struct epoll_event event;

	(void)i;
	epoll_wait(set, &event, 1, -1);
}

static void make(void)
{
	struct epoll_event event = {.events = EPOLLIN};

	set = MUST(epoll_create1(0));
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, MUST(eventfd(0, 0)), &event));
	waiters_make(NULL, wait_for_it);
}

KIND(epoll_waiters, "epoll", "process that waits for one epoll", .shape = ON_ONE, .limit = "nproc",
     .make = make, WAITERS_KILLED);
