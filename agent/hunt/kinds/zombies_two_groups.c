// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

/* The zombies' parent is a child of the owner: its exit is what is measured. */
static pid_t parent;

/* A kernel may look at a group only if one of its members was stopped once. */
static void stop_once(pid_t pid)
{
	siginfo_t info;

	MUST(kill(pid, SIGSTOP));
	MUST(waitid(P_PID, pid, &info, WSTOPPED));
	MUST(kill(pid, SIGCONT));
}

static void make(void)
{
	pid_t *pids = array(sizeof(*pids));

	ready_make();
	MUST(setsid());
	parent = child(0, true);
	if (parent)
		return ready_wait();
	crowd_make(pids, CROWD_TWO_GROUPS, NULL, NULL);
	for (int64_t i = 0; i < nr_objects && i < 2; i++)
		stop_once(pids[i]);
	crowd_zombies(pids);
	ready_say();
	wait_to_be_killed();
}

static void release(void)
{
	MUST(kill(parent, SIGKILL));
	MUST(waitpid(parent, NULL, 0));
}

KIND(zombies_two_groups, "processes",
     "zombie in one of two process groups that alternate and had a stop; its parent exits",
     .shape = OF_ONE, .limit = "nproc", .call = "kill(parent)", .make = make, .release = release);
