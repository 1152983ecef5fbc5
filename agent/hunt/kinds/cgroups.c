// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/cgroups.h"

KIND(cgroups, "cgroups", "cgroup with all controllers, beside the others", .shape = OF_ONE,
     .limit = "memory_cgroups", .privileged = true, .prepare = cgroups_prepare, .add = cgroup_add,
     .remove = cgroup_remove, .left = cgroups_left);
