// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

#include <linux/nexthop.h>

static void change(int type, int64_t i)
{
	struct nhmsg body = {.nh_family = type == RTM_NEWNEXTHOP ? AF_INET : AF_UNSPEC};

	net_request(type, &body, sizeof(body));
	net_attribute_u32(NHA_ID, i + 1);
	if (type == RTM_NEWNEXTHOP)
		net_attribute_u32(NHA_OIF, NET_FIRST);
	MUST(net_send());
}

static void add(int64_t i)
{
	change(RTM_NEWNEXTHOP, i);
}

static void remove_one(int64_t i)
{
	change(RTM_DELNEXTHOP, i);
}

KIND(nexthops, "netdevices", "IPv4 nexthop object of one device", .modules = "dummy",
     .shape = ON_ONE, .limit = "memory", .needs = "CONFIG_DUMMY",
     .call = "RTM_DELLINK of the device", .exit = true, .prepare = net_one_device, .add = add,
     .remove = remove_one, .release = net_unlink_one);
