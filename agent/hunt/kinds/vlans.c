// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/vlans.h"

KIND(vlans, "netdevices", "VLAN device on one dummy device", .modules = "8021q dummy",
     .shape = ON_ONE, .limit = "memory", .needs = "CONFIG_VLAN_8021Q", .most = VLANS_MOST,
     .call = "RTM_DELLINK of the device below", .exit = true, .prepare = net_one_device,
     .add = vlan_add, .remove = vlan_remove, .release = net_unlink_one);
