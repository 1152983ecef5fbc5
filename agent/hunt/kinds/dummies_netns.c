// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"
#include "hunt/lib/netns_beside.h"

static void add(int64_t i)
{
	net_link("dummy", NET_FIRST + i, true);
}

static void release(void)
{
	/* A group without devices is an error. */
	if (nr_objects)
		net_unlink_group();
}

static void stay(int64_t i)
{
	(void)i;
	netns_beside();
}

KIND(dummies_netns, "netdevices", "dummy device of one network namespace beside others, no IPv6",
     .modules = "dummy", .shape = OF_ONE, .limit = "memory", .needs = "CONFIG_DUMMY",
     .call = "RTM_DELLINK of their group", .prepare = net_without_ipv6, .add = add,
     .remove = net_unlink_object, .release = release,
     .resident = "other network namespace, without devices of its own", .residents_limit = "netns",
     .most_residents = 512, .stay = stay);
