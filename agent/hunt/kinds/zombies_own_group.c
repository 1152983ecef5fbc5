// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

static pid_t parent;

static void make(void)
{
	pid_t *pids = array(sizeof(*pids));

	ready_make();
	parent = child(0, true);
	if (parent)
		return ready_wait();
	crowd_make(pids, CROWD_SAME_GROUP, NULL, NULL);
	crowd_zombies(pids);
	ready_say();
	wait_to_be_killed();
}

static void release(void)
{
	MUST(kill(parent, SIGKILL));
	MUST(waitpid(parent, NULL, 0));
}

KIND(zombies_own_group, "processes", "zombie in the process group of its parent, which exits",
     .shape = OF_ONE, .limit = "nproc", .call = "kill(parent)", .make = make, .release = release);
