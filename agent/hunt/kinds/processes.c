// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

static pid_t *pids;

static void make(void)
{
	pids = array(sizeof(*pids));
	crowd_make(pids, CROWD_ONE_GROUP, NULL, NULL);
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

KIND(processes, "processes", "process of one group that is killed", .shape = OF_ONE,
     .limit = "nproc", .call = "kill(group), waitpid() of all", .make = make, .remove = remove_one,
     .release = release);
