// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/namespaces.h"

static int open_one(int64_t i)
{
	(void)i;
	return namespace_open(CLONE_NEWCGROUP, "cgroup");
}

KIND(cgroupns_fds, "namespaces", "cgroup namespace that a descriptor keeps", .shape = OF_ONE,
     .limit = "cgroupns", .prepare = namespaces_prepare, .open = open_one);
