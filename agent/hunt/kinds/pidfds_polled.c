// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

#include <sys/epoll.h>

static pid_t *pids;

static int epoll_fd;

static void watch(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int64_t i;

	epoll_fd = MUST(epoll_create1(EPOLL_CLOEXEC));
	for (i = 0; i < nr_objects; i++) {
		int fd = MUST(syscall(SYS_pidfd_open, pids[i], 0));

		MUST(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event));
	}
}

static void make(void)
{
	pids = array(sizeof(*pids));
	crowd_make(pids, CROWD_ONE_GROUP, NULL, NULL);
	watch();
}

static void remove_one(int64_t i)
{
	crowd_kill_one(pids[i]);
}

static void release(void)
{
	MUST(kill(-pids[0], SIGKILL));
	crowd_reap(pids);
}

KIND(pidfds_polled, "processes", "child with a pidfd in one epoll instance", .shape = OF_ONE,
     .limit = "nproc", .call = "kill(group), waitpid() of all", .make = make, .remove = remove_one,
     .release = release);
