// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/cgroups.h"
#include "hunt/lib/crowd.h"

static pid_t *pids;

static void prepare(void)
{
	cgroups_prepare();
	pids = array(sizeof(*pids));
}

static void add(int64_t i)
{
	cgroup_add(i);
	pids[i] = child(0, true);
	if (!pids[i])
		wait_to_be_killed();
	cgroup_enter(i, pids[i]);
}

static void remove_one(int64_t i)
{
	crowd_kill_one(pids[i]);
	cgroup_remove(i);
}

KIND(cgroups_processes, "cgroups", "cgroup with a process, which is killed before its removal",
     .shape = OF_ONE, .limit = "memory_cgroups", .privileged = true, .prepare = prepare, .add = add,
     .remove = remove_one, .left = cgroups_left);
