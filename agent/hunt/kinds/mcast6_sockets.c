// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int open_one(int64_t i)
{
	struct ipv6_mreq group = {.ipv6mr_multiaddr.s6_addr = {0xff, 5},
				  .ipv6mr_interface = NET_LOOPBACK};
	int fd = MUST(socket(AF_INET6, SOCK_DGRAM, 0));

	group.ipv6mr_multiaddr.s6_addr32[3] = htonl(i + 1);
	MUST(setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &group, sizeof(group)));
	return fd;
}

KIND(mcast6_sockets, "sockets", "UDP socket that joined an IPv6 group of its own on one device",
     .shape = ON_ONE, .limit = "nofile", .needs = "CONFIG_IPV6", .prepare = net_namespace_kept,
     .open = open_one);
