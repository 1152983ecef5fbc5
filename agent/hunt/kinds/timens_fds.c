// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/namespaces.h"

static int open_one(int64_t i)
{
	(void)i;
	return namespace_open(CLONE_NEWTIME, "time_for_children");
}

KIND(timens_fds, "namespaces", "time namespace that a descriptor keeps", .shape = OF_ONE,
     .limit = "timens", .needs = "CONFIG_TIME_NS", .prepare = namespaces_prepare, .open = open_one);
