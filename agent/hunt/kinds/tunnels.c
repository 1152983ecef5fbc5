// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

#include <linux/if_tunnel.h>

static void add(int64_t i)
{
	struct rtattr *info = net_link_begin("ipip", NET_FIRST + i, true);
	struct rtattr *data = net_attribute(IFLA_INFO_DATA, NULL, 0);

	net_attribute_u32(IFLA_IPTUN_LOCAL, htonl(INADDR_LOOPBACK));
	net_attribute_u32(IFLA_IPTUN_REMOTE, htonl(0x0a000001 + i));
	net_nested(data);
	net_link_end(info);
}

KIND(tunnels, "netdevices", "IPIP tunnel with a peer of its own", .modules = "ipip",
     .shape = OF_ONE, .limit = "memory", .needs = "CONFIG_NET_IPIP",
     .call = "RTM_DELLINK of their group", .exit = true, .prepare = net_namespace_own, .add = add,
     .remove = net_unlink_object, .release = net_unlink_group);
