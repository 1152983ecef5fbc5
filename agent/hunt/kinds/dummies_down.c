// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

static void add(int64_t i)
{
	net_link("dummy", NET_FIRST + i, false);
}

KIND(dummies_down, "netdevices", "dummy device that is down", .modules = "dummy", .shape = OF_ONE,
     .limit = "memory", .needs = "CONFIG_DUMMY", .call = "RTM_DELLINK of their group", .exit = true,
     .prepare = net_namespace_own, .add = add, .remove = net_unlink_object,
     .release = net_unlink_group);
