// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

static void add(int64_t i)
{
	net_link("dummy", NET_FIRST + i, true);
	net_address4(RTM_NEWADDR, NET_FIRST + i, 0x0a000001 + 256 * i, 24);
}

KIND(dummies_address4, "netdevices", "dummy device with an IPv4 address, without IPv6",
     .modules = "dummy", .shape = OF_ONE, .limit = "memory", .needs = "CONFIG_DUMMY",
     .call = "RTM_DELLINK of their group", .exit = true, .prepare = net_without_ipv6, .add = add,
     .remove = net_unlink_object, .release = net_unlink_group);
