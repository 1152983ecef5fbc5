/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Many processes that wait for a signal. They run on the memory of the process that makes them
 * (CLONE_VM), which makes them ten times cheaper; descriptors and signal handlers are their own.
 */
#ifndef KTEARDOWN_HUNT_CROWD_H
#define KTEARDOWN_HUNT_CROWD_H

#include "hunt/kind.h"

#include <sched.h>
#include <sys/prctl.h>

#define CROWD_STACK 16384

enum crowd_groups {
	CROWD_SAME_GROUP, /* the process group of their parent */
	CROWD_ONE_GROUP, /* one process group, which the first one leads */
	CROWD_TWO_GROUPS, /* two that alternate, which the first two lead */
	CROWD_OWN_GROUPS, /* each leads a process group */
};

static struct {
	pid_t *pids;
	enum crowd_groups groups;
	void (*first)(int64_t i), (*then)(int64_t i);
	int64_t i;
	int ready;
} crowd;

static inline int crowd_one(void *unused)
{
	void (*then)(int64_t i) = crowd.then;
	int64_t i = crowd.i;

	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (crowd.groups == CROWD_OWN_GROUPS)
		MUST(setpgid(0, 0));
	else if (crowd.groups == CROWD_ONE_GROUP)
		MUST(setpgid(0, i ? crowd.pids[0] : 0));
	else if (crowd.groups == CROWD_TWO_GROUPS)
		MUST(setpgid(0, i > 1 ? crowd.pids[i % 2] : 0));
	if (crowd.first)
		crowd.first(i);
	MUST(write(crowd.ready, "r", 1));
	if (then)
		then(i);
	wait_to_be_killed();
}

/*
 * Makes one process for each object. Each calls first() before it is counted as made, and then()
 * afterwards, in which it may block; either may be NULL.
 */
static inline void crowd_make(pid_t *pids, enum crowd_groups groups, void (*first)(int64_t i),
			      void (*then)(int64_t i))
{
	char *stacks = mmap(NULL, nr_objects * CROWD_STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int ends[2];
	int64_t i;
	char c;

	MUST((long)stacks);
	MUST(pipe2(ends, O_CLOEXEC));
	crowd.pids = pids;
	crowd.groups = groups;
	crowd.first = first;
	crowd.then = then;
	crowd.ready = ends[1];
	for (i = 0; i < nr_objects; i++) {
		crowd.i = i;
		pids[i] = MUST(
			clone(crowd_one, stacks + (i + 1) * CROWD_STACK, CLONE_VM | SIGCHLD, NULL));
		if (read(ends[0], &c, 1) != 1)
			owner_failed("read() from a process of the crowd");
	}
	close(ends[0]);
	close(ends[1]);
}

/* Waits for all of them, the youngest first, so that each wait() finds its child at once. */
static inline void crowd_reap(const pid_t *pids)
{
	int64_t i;

	for (i = nr_objects - 1; i >= 0; i--)
		MUST(waitpid(pids[i], NULL, 0));
}

/* Kills one of them and waits for it. */
static inline void crowd_kill_one(pid_t pid)
{
	MUST(kill(pid, SIGKILL));
	MUST(waitpid(pid, NULL, 0));
}

/* Kills all of them; they stay zombies. */
static inline void crowd_zombies(const pid_t *pids)
{
	siginfo_t info;
	int64_t i;

	for (i = 0; i < nr_objects; i++) {
		MUST(kill(pids[i], SIGKILL));
		MUST(waitid(P_PID, pids[i], &info, WEXITED | WNOWAIT));
	}
}

#endif
