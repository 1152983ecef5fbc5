// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/namespaces.h"

static int open_one(int64_t i)
{
	(void)i;
	return namespace_open_of_child(CLONE_NEWPID, "pid");
}

KIND(pidns_fds, "namespaces", "pid namespace that a descriptor keeps, beside the others",
     .shape = ON_ONE, .limit = "pidns", .prepare = namespaces_prepare, .open = open_one);
