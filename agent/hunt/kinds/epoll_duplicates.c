// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

static int set, fd;

static void prepare(void)
{
	set = MUST(epoll_create1(0));
	fd = MUST(eventfd(0, 0));
}

static int open_one(int64_t i)
{
	struct epoll_event event = {.events = EPOLLIN};
	int copy = MUST(dup(fd));

	if (i == nr_objects - 1)
		close(fd);
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, copy, &event));
	return copy;
}

static void release(void)
{
	MUST(close(set));
}

KIND(epoll_duplicates, "epoll", "descriptor of one eventfd in one epoll", .shape = ON_ONE,
     .limit = "nofile", .call = "close(epoll)", .prepare = prepare, .open = open_one,
     .release = release);
