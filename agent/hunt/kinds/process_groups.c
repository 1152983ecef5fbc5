// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

static pid_t *pids;

static void make(void)
{
	pids = array(sizeof(*pids));
	crowd_make(pids, CROWD_OWN_GROUPS, NULL, NULL);
}

static void remove_one(int64_t i)
{
	crowd_kill_one(pids[i]);
}

KIND(process_groups, "processes", "process that leads a process group of its own", .shape = OF_ONE,
     .limit = "nproc", .make = make, .remove = remove_one);
