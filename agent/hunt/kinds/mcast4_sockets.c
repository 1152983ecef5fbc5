// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int open_one(int64_t i)
{
	struct ip_mreqn group = {.imr_multiaddr.s_addr = htonl(0xe8000001 + i),
				 .imr_ifindex = NET_LOOPBACK};
	int fd = MUST(socket(AF_INET, SOCK_DGRAM, 0));

	MUST(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group)));
	return fd;
}

KIND(mcast4_sockets, "sockets", "UDP socket that joined an IPv4 group of its own on one device",
     .shape = ON_ONE, .limit = "nofile", .needs = "CONFIG_INET", .prepare = net_namespace_kept,
     .open = open_one);
