// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/epoll.h>
#include <sys/signalfd.h>

static int set;

static void prepare(void)
{
	set = MUST(epoll_create1(0));
}

/* Each adds an entry to the one wait queue that the signals of a process have. */
static int open_one(int64_t i)
{
	struct epoll_event event = {.events = EPOLLIN};
	sigset_t signals;
	int fd;

	(void)i;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	fd = MUST(signalfd(-1, &signals, 0));
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	return fd;
}

KIND(signalfds_in_epoll, "epoll", "signalfd of one process, in an epoll", .shape = ON_ONE,
     .limit = "nofile", .prepare = prepare, .open = open_one);
