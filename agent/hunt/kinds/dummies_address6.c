// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

static void add(int64_t i)
{
	net_link("dummy", NET_FIRST + i, true);
	net_address6(RTM_NEWADDR, NET_FIRST + i, i, 1);
}

KIND(dummies_address6, "netdevices", "dummy device with an IPv6 address", .modules = "dummy",
     .shape = OF_ONE, .limit = "memory", .needs = "CONFIG_DUMMY",
     .call = "RTM_DELLINK of their group", .exit = true, .prepare = net_namespace_own, .add = add,
     .remove = net_unlink_object, .release = net_unlink_group);
