// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

#include <linux/if_link.h>

static void add(int64_t i)
{
	struct rtattr *info = net_link_begin("macvlan", NET_FIRST + 1 + i, true);

	net_nested(info);
	net_attribute_u32(IFLA_LINK, NET_FIRST);
	MUST(net_send());
}

static void remove_one(int64_t i)
{
	net_unlink(NET_FIRST + 1 + i);
}

KIND(macvlans, "netdevices", "macvlan device on one dummy device", .modules = "macvlan dummy",
     .shape = ON_ONE, .limit = "memory", .needs = "CONFIG_MACVLAN",
     .call = "RTM_DELLINK of the device below", .exit = true, .prepare = net_one_device, .add = add,
     .remove = remove_one, .release = net_unlink_one);
