// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

/* The ports follow it. */
#define MASTER 999

static void prepare(void)
{
	net_namespace_own();
	net_link("bridge", MASTER, true);
}

static void add(int64_t i)
{
	struct ifinfomsg body = {.ifi_index = NET_FIRST + i};

	net_link("dummy", NET_FIRST + i, true);
	net_request(RTM_NEWLINK, &body, sizeof(body));
	net_attribute_u32(IFLA_MASTER, MASTER);
	MUST(net_send());
}

static void release(void)
{
	net_unlink(MASTER);
}

KIND(bridge_ports, "netdevices", "dummy device that is a port of one bridge",
     .modules = "bridge dummy", .shape = ON_ONE, .limit = "memory", .needs = "CONFIG_BRIDGE",
     .call = "RTM_DELLINK of the bridge", .exit = true, .prepare = prepare, .add = add,
     .remove = net_unlink_object, .release = release, .most = 1023);
