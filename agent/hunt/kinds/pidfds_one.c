// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/epoll.h>

static int epoll_fd;
static pid_t pid;

static void prepare(void)
{
	epoll_fd = MUST(epoll_create1(EPOLL_CLOEXEC));
	pid = child(0, true);
	if (!pid)
		wait_to_be_killed();
}

static int open_one(int64_t i)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = MUST(syscall(SYS_pidfd_open, pid, 0));

	(void)i;
	MUST(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event));
	return fd;
}

static void release(void)
{
	MUST(kill(pid, SIGKILL));
	MUST(waitpid(pid, NULL, 0));
}

KIND(pidfds_one, "processes", "pidfd of one process, in one epoll instance", .shape = ON_ONE,
     .limit = "nofile", .call = "kill(process)", .prepare = prepare, .open = open_one,
     .release = release);
