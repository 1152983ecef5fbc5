// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/namespaces.h"

static int open_one(int64_t i)
{
	(void)i;
	return namespace_open_of_child(CLONE_NEWUSER, "user");
}

KIND(userns_fds, "namespaces", "user namespace that a descriptor keeps, beside the others",
     .shape = ON_ONE, .limit = "userns", .needs = "CONFIG_USER_NS", .prepare = namespaces_prepare,
     .open = open_one);
