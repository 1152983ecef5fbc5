// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

static void add(int64_t i)
{
	net_address6(RTM_NEWADDR, NET_FIRST, 0, i + 1);
}

static void remove_one(int64_t i)
{
	net_address6(RTM_DELADDR, NET_FIRST, 0, i + 1);
}

KIND(addresses6, "netdevices", "IPv6 address of one device", .modules = "dummy", .shape = ON_ONE,
     .limit = "memory", .needs = "CONFIG_DUMMY", .call = "RTM_DELLINK of the device", .exit = true,
     .prepare = net_one_device, .add = add, .remove = remove_one, .release = net_unlink_one);
