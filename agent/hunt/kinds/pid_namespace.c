// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

static pid_t parent;

static void make(void)
{
	pid_t *pids = array(sizeof(*pids));

	new_namespaces(0);
	ready_make();
	parent = child(CLONE_NEWPID, true);
	if (parent)
		return ready_wait();
	crowd_make(pids, CROWD_SAME_GROUP, NULL, NULL);
	ready_say();
	wait_to_be_killed();
}

static void release(void)
{
	MUST(kill(parent, SIGKILL));
	MUST(waitpid(parent, NULL, 0));
}

KIND(pid_namespace, "processes", "process of a pid namespace whose init is killed", .shape = OF_ONE,
     .limit = "nproc", .call = "kill(parent)", .make = make, .release = release);
