// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/vlans.h"

/* The device of the neighbours; the VLANs are on the one of net_one_device(). */
#define OTHER_DEVICE (NET_FIRST - 1)

static void prepare(void)
{
	net_one_device();
	net_link("dummy", OTHER_DEVICE, true);
}

static void stay(int64_t i)
{
	net_neighbour(RTM_NEWNEIGH, AF_INET, OTHER_DEVICE, 7 * i + 1);
}

KIND(vlans_neighbours, "netdevices", "VLAN device beside a device with neighbours",
     .modules = "8021q dummy", .shape = ON_ONE, .limit = "memory", .needs = "CONFIG_VLAN_8021Q",
     .most = VLANS_MOST, .call = "RTM_DELLINK of the device below", .exit = true,
     .prepare = prepare, .add = vlan_add, .remove = vlan_remove, .release = net_unlink_one,
     .resident = "permanent IPv4 neighbour on another device", .residents_limit = "memory",
     .stay = stay);
