// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/cgroups.h"

static void prepare(void)
{
	cgroups_make("+memory");
}

KIND(memory_cgroups, "cgroups", "memory cgroup, beside the others", .shape = OF_ONE,
     .limit = "memory_cgroups", .needs = "CONFIG_MEMCG", .privileged = true, .prepare = prepare,
     .add = cgroup_add, .remove = cgroup_remove, .left = cgroups_left);
