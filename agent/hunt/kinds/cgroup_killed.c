// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/cgroups.h"
#include "hunt/lib/crowd.h"

static pid_t *pids;

static void enter(int64_t i)
{
	(void)i;
	cgroup_enter(-1, 0);
}

static void make(void)
{
	pids = array(sizeof(*pids));
	cgroups_make("");
	crowd_make(pids, CROWD_SAME_GROUP, enter, NULL);
}

static void release(void)
{
	cgroup_write(-1, "cgroup.kill", "1");
	crowd_reap(pids);
}

KIND(cgroup_killed, "cgroups", "process of one cgroup that cgroup.kill ends", .shape = ON_ONE,
     .limit = "nproc", .privileged = true, .call = "cgroup.kill", .make = make, .release = release,
     .left = cgroups_left);
