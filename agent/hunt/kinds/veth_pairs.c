// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

#include <linux/veth.h>

static void add(int64_t i)
{
	struct ifinfomsg peer = {.ifi_index = 1000000 + i};
	struct rtattr *info = net_link_begin("veth", NET_FIRST + i, true);
	struct rtattr *data = net_attribute(IFLA_INFO_DATA, NULL, 0);
	struct rtattr *nested = net_attribute(VETH_INFO_PEER, &peer, sizeof(peer));
	char name[16];

	snprintf(name, sizeof(name), "peer%d", (int)i);
	net_attribute(IFLA_IFNAME, name, strlen(name) + 1);
	net_nested(nested);
	net_nested(data);
	net_link_end(info);
}

KIND(veth_pairs, "netdevices", "pair of veth devices, one of which is up", .modules = "veth",
     .shape = OF_ONE, .limit = "memory", .needs = "CONFIG_VETH",
     .call = "RTM_DELLINK of their group", .exit = true, .prepare = net_namespace_own, .add = add,
     .remove = net_unlink_object, .release = net_unlink_group);
