// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

static pid_t *pids;

static void make(void)
{
	pids = array(sizeof(*pids));
	crowd_make(pids, CROWD_SAME_GROUP, NULL, NULL);
}

static void remove_one(int64_t i)
{
	MUST(kill(pids[i], SIGKILL));
	MUST(waitpid(-1, NULL, 0));
}

KIND(processes_wait_any, "processes", "child that is killed and waited for with waitpid(-1)",
     .shape = OF_ONE, .limit = "nproc", .make = make, .remove = remove_one);
