// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/cgroups.h"

static void prepare(void)
{
	cgroups_make("+cpuset");
}

KIND(cpusets, "cgroups", "cgroup with a cpuset, beside the others", .shape = OF_ONE,
     .limit = "cgroups", .needs = "CONFIG_CPUSETS", .privileged = true, .prepare = prepare,
     .add = cgroup_add, .remove = cgroup_remove, .left = cgroups_left);
