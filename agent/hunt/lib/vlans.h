/* SPDX-License-Identifier: GPL-2.0 */
/* VLAN devices on the device of net_one_device(). */
#ifndef KTEARDOWN_HUNT_VLANS_H
#define KTEARDOWN_HUNT_VLANS_H

#include "hunt/lib/netlink.h"

#include <linux/if_link.h>

#define VLANS_MOST 4094

/* For add() and remove(): object i has the device NET_FIRST + 1 + i. */
static inline void vlan_add(int64_t i)
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

static inline void vlan_remove(int64_t i)
{
	net_unlink(NET_FIRST + 1 + i);
}

#endif
