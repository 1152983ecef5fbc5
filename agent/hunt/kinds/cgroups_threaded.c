// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/cgroups.h"

static void prepare(void)
{
	cgroups_make("+cpu +pids");
}

static void add(int64_t i)
{
	cgroup_add(i);
	cgroup_write(i, "cgroup.type", "threaded");
}

KIND(cgroups_threaded, "cgroups", "threaded cgroup, beside the others", .shape = OF_ONE,
     .limit = "cgroups", .privileged = true, .prepare = prepare, .add = add,
     .remove = cgroup_remove, .left = cgroups_left);
