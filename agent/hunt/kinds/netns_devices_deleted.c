// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netns_devices.h"

/* The control for netns_devices: one request for the devices of each namespace. */
static void release(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++) {
		netns_devices_enter(i);
		net_unlink_group();
		netns_devices_leave();
	}
	netns_devices_close();
}

KIND(netns_devices_deleted, "namespaces",
     "network namespace whose eight dummy devices are deleted before, without IPv6",
     .modules = "dummy", .shape = OF_ONE, .limit = "netns", .needs = "CONFIG_DUMMY",
     .call = "RTM_DELLINK in each, close() of all", .prepare = netns_devices_prepare,
     .add = netns_devices_add, .release = release);
