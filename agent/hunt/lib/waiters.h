/* SPDX-License-Identifier: GPL-2.0 */
/* A crowd of processes that all wait in one system call. */
#ifndef KTEARDOWN_HUNT_WAITERS_H
#define KTEARDOWN_HUNT_WAITERS_H

#include "hunt/lib/crowd.h"

static pid_t *waiters;

static inline bool waiter_runs(pid_t pid)
{
	char path[40], text[256] = "", *end;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = MUST(open(path, O_RDONLY | O_CLOEXEC));
	MUST(read(fd, text, sizeof(text) - 1));
	close(fd);
	end = strrchr(text, ')');
	return end && end[2] == 'R';
}

/* One process for each object, which calls prepare(), if it is there, and blocks in wait(). */
static inline void waiters_make(void (*prepare)(int64_t i), void (*wait)(int64_t i))
{
	int64_t i;

	waiters = array(sizeof(*waiters));
	crowd_make(waiters, CROWD_ONE_GROUP, prepare, wait);
	for (i = 0; i < nr_objects; i++)
		while (waiter_runs(waiters[i]))
			usleep(1000);
}

/* Kills all and reaps them. */
static inline void waiters_kill(void)
{
	MUST(kill(-waiters[0], SIGKILL));
	crowd_reap(waiters);
}

static inline void waiters_kill_one(int64_t i)
{
	crowd_kill_one(waiters[i]);
}

/* As the arguments of KIND(): they are killed one by one, or as a group. */
#define WAITERS_KILLED                                                                             \
	.call = "kill(group) and wait()", .remove = waiters_kill_one, .release = waiters_kill

#endif
