// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

static int set;

static void prepare(void)
{
	set = MUST(epoll_create1(0));
}

static int open_one(int64_t i)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = MUST(eventfd(0, 0));

	(void)i;
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	return fd;
}

static void release(void)
{
	MUST(close(set));
}

KIND(epoll_items, "epoll", "eventfd in one epoll", .shape = OF_ONE, .limit = "nofile",
     .call = "close(epoll)", .prepare = prepare, .open = open_one, .release = release);
