// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

/* The next address becomes the primary one of the subnet when the primary one is removed. */
static void prepare(void)
{
	net_one_device();
	put_file("/proc/sys/net/ipv4/conf/all/promote_secondaries", "1");
}

static void add(int64_t i)
{
	net_address4(RTM_NEWADDR, NET_FIRST, 0x0a000001 + i, 8);
}

static void remove_one(int64_t i)
{
	net_address4(RTM_DELADDR, NET_FIRST, 0x0a000001 + i, 8);
}

KIND(addresses4_subnet, "netdevices", "IPv4 address of one device, in one subnet",
     .modules = "dummy", .shape = ON_ONE, .limit = "memory", .needs = "CONFIG_DUMMY",
     .call = "RTM_DELLINK of the device", .exit = true, .prepare = prepare, .add = add,
     .remove = remove_one, .release = net_unlink_one);
