// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

#include <linux/if_link.h>

static void add(int64_t i)
{
	struct rtattr *info = net_link_begin("vrf", NET_FIRST + i, true);
	struct rtattr *data = net_attribute(IFLA_INFO_DATA, NULL, 0);

	net_attribute_u32(IFLA_VRF_TABLE, 1000 + i);
	net_nested(data);
	net_link_end(info);
}

KIND(vrfs, "netdevices", "VRF device with a routing table of its own", .modules = "vrf",
     .shape = OF_ONE, .limit = "memory", .needs = "CONFIG_NET_VRF",
     .call = "RTM_DELLINK of their group", .exit = true, .prepare = net_namespace_own, .add = add,
     .remove = net_unlink_object, .release = net_unlink_group);
