// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

static int outer;

static void prepare(void)
{
	outer = MUST(epoll_create1(0));
}

/* The eventfd stays open; with the epoll, its place in it goes. */
static int open_one(int64_t i)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = MUST(eventfd(1, 0)), inner = MUST(epoll_create1(0));

	(void)i;
	MUST(epoll_ctl(inner, EPOLL_CTL_ADD, fd, &event));
	MUST(epoll_ctl(outer, EPOLL_CTL_ADD, inner, &event));
	return inner;
}

static void release(void)
{
	MUST(close(outer));
}

KIND(epolls_nested, "epoll", "epoll with an eventfd, in one epoll around them", .shape = OF_ONE,
     .limit = "nofile", .call = "close(outer epoll)", .prepare = prepare, .open = open_one,
     .release = release);
