// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

static int fd;

static void prepare(void)
{
	fd = MUST(eventfd(0, 0));
}

static int open_one(int64_t i)
{
	struct epoll_event event = {.events = EPOLLIN};
	int set = MUST(epoll_create1(0));

	(void)i;
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	return set;
}

static void release(void)
{
	MUST(close(fd));
}

KIND(epolls_one_file, "epoll", "epoll with one and the same eventfd in it", .shape = ON_ONE,
     .limit = "nofile", .call = "close(eventfd)", .prepare = prepare, .open = open_one,
     .release = release);
