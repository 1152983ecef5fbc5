/* SPDX-License-Identifier: GPL-2.0 */
/* Network namespaces with eight devices each. */
#ifndef KTEARDOWN_HUNT_NETNS_DEVICES_H
#define KTEARDOWN_HUNT_NETNS_DEVICES_H

#include "hunt/lib/netlink.h"
#include "hunt/lib/netns_beside.h"

#define NETNS_DEVICES 8

static int *netns_fds;

static inline void netns_devices_prepare(void)
{
	new_namespaces(CLONE_NEWNET);
	netns_fds = array(sizeof(*netns_fds));
}

/* Enters the namespace of object i, in which requests go to the kernel. */
static inline void netns_devices_enter(int64_t i)
{
	MUST(setns(netns_fds[i], CLONE_NEWNET));
	net.fd = MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
}

static inline void netns_devices_leave(void)
{
	close(net.fd);
	MUST(setns(netns_home, CLONE_NEWNET));
}

static inline void netns_devices_add(int64_t i)
{
	int device;

	netns_fds[i] = netns_beside();
	netns_devices_enter(i);
	put_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	for (device = 0; device < NETNS_DEVICES; device++)
		net_link("dummy", NET_FIRST + device, true);
	netns_devices_leave();
}

static inline void netns_devices_close(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++)
		MUST(close(netns_fds[i]));
}

#endif
