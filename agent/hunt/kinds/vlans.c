// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

#include <linux/if_link.h>

static void add(int64_t i)
{
	struct rtattr *info = net_link_begin("vlan", NET_FIRST + 1 + i, true);
	struct rtattr *data = net_attribute(IFLA_INFO_DATA, NULL, 0);
	uint16_t number = i + 1;

	net_attribute(IFLA_VLAN_ID, &number, sizeof(number));
	net_nested(data);
	net_nested(info);
	net_attribute_u32(IFLA_LINK, NET_FIRST);
	MUST(net_send());
}

static void remove_one(int64_t i)
{
	net_unlink(NET_FIRST + 1 + i);
}

KIND(vlans, "netdevices", "VLAN device on one dummy device", .modules = "8021q dummy",
     .shape = ON_ONE, .limit = "memory", .needs = "CONFIG_VLAN_8021Q", .most = 4094,
     .call = "RTM_DELLINK of the device below", .exit = true, .prepare = net_one_device, .add = add,
     .remove = remove_one, .release = net_unlink_one);
