// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

static void add(int64_t i)
{
	net_link("dummy", NET_FIRST + i, true);
	net_neighbour(RTM_NEWNEIGH, AF_INET, NET_FIRST + i, i + 1);
}

KIND(dummies_neighbour, "netdevices", "dummy device with a permanent neighbour, without IPv6",
     .modules = "dummy", .shape = OF_ONE, .limit = "memory", .needs = "CONFIG_DUMMY",
     .call = "RTM_DELLINK of their group", .exit = true, .prepare = net_without_ipv6, .add = add,
     .remove = net_unlink_object, .release = net_unlink_group);
