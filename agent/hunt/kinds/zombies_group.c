// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

/* The zombies' parent is a child of the owner: its exit is what is measured. */
static pid_t parent;

static void make(void)
{
	pid_t *pids = array(sizeof(*pids));

	ready_make();
	MUST(setsid());
	parent = child(0, true);
	if (parent)
		return ready_wait();
	crowd_make(pids, CROWD_ONE_GROUP, NULL, NULL);
	crowd_zombies(pids);
	ready_say();
	wait_to_be_killed();
}

static void release(void)
{
	MUST(kill(parent, SIGKILL));
	MUST(waitpid(parent, NULL, 0));
}

KIND(zombies_group, "processes", "zombie in a process group of its own job; its parent exits",
     .shape = OF_ONE, .limit = "nproc", .call = "kill(parent)", .make = make, .release = release);
