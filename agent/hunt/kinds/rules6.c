// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

static void add(int64_t i)
{
	net_rule(RTM_NEWRULE, AF_INET6, 1 + i);
}

static void remove_one(int64_t i)
{
	net_rule(RTM_DELRULE, AF_INET6, 1 + i);
}

KIND(rules6, "netdevices", "IPv6 routing rule of one network namespace", .modules = "dummy",
     .shape = ON_ONE, .limit = "memory", .needs = "CONFIG_IPV6_MULTIPLE_TABLES", .exit = true,
     .prepare = net_namespace_own, .add = add, .remove = remove_one);
