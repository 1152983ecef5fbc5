// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/namespaces.h"

static int open_one(int64_t i)
{
	(void)i;
	return namespace_open(CLONE_NEWUTS, "uts");
}

KIND(utsns_fds, "namespaces", "UTS namespace that a descriptor keeps", .shape = OF_ONE,
     .limit = "utsns", .prepare = namespaces_prepare, .open = open_one);
