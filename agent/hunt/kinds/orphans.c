// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

static pid_t parent;

/* It is not killed when its parent exits. */
static void survive(int64_t i)
{
	(void)i;
	prctl(PR_SET_PDEATHSIG, 0);
}

static void make(void)
{
	pid_t *pids = array(sizeof(*pids));

	ready_make();
	parent = child(0, true);
	if (parent)
		return ready_wait();
	crowd_make(pids, CROWD_SAME_GROUP, survive, NULL);
	ready_say();
	wait_to_be_killed();
}

static void release(void)
{
	MUST(kill(parent, SIGKILL));
	MUST(waitpid(parent, NULL, 0));
}

KIND(orphans, "processes", "running child of a process that exits; a reaper adopts it",
     .shape = OF_ONE, .limit = "nproc", .call = "kill(parent)", .make = make, .release = release);
