// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

static pid_t *pids;

static void lead(int64_t i)
{
	(void)i;
	MUST(setsid());
}

static void make(void)
{
	pids = array(sizeof(*pids));
	crowd_make(pids, CROWD_SAME_GROUP, lead, NULL);
}

static void remove_one(int64_t i)
{
	crowd_kill_one(pids[i]);
}

KIND(sessions, "processes", "process that leads a session of its own", .shape = OF_ONE,
     .limit = "nproc", .make = make, .remove = remove_one);
