// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/namespaces.h"

static int open_one(int64_t i)
{
	(void)i;
	return namespace_open(CLONE_NEWNET, "net");
}

KIND(netns_fds, "namespaces", "network namespace that a descriptor keeps", .shape = OF_ONE,
     .limit = "netns", .needs = "CONFIG_NET_NS", .prepare = namespaces_prepare, .open = open_one);
