// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/cgroups.h"

static void prepare(void)
{
	cgroups_make("");
}

KIND(cgroups_bare, "cgroups", "cgroup without controllers, beside the others", .shape = OF_ONE,
     .limit = "cgroups", .privileged = true, .prepare = prepare, .add = cgroup_add,
     .remove = cgroup_remove, .left = cgroups_left);
