// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

static void add(int64_t i)
{
	net_route(RTM_NEWROUTE, AF_INET, NET_FIRST, 7 * i + 1);
}

static void remove_one(int64_t i)
{
	net_route(RTM_DELROUTE, AF_INET, NET_FIRST, 7 * i + 1);
}

KIND(routes4, "netdevices", "IPv4 route through one device", .modules = "dummy", .shape = ON_ONE,
     .limit = "memory", .needs = "CONFIG_DUMMY", .call = "RTM_DELLINK of the device", .exit = true,
     .prepare = net_one_device, .add = add, .remove = remove_one, .release = net_unlink_one);
