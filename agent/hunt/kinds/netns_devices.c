// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netns_devices.h"

KIND(netns_devices, "namespaces", "network namespace with eight dummy devices, without IPv6",
     .modules = "dummy", .shape = OF_ONE, .limit = "netns", .needs = "CONFIG_DUMMY",
     .call = "close() of all", .prepare = netns_devices_prepare, .add = netns_devices_add,
     .release = netns_devices_close);
