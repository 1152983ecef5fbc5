// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int open_one(int64_t i)
{
	struct ip_mreqn group = {.imr_multiaddr.s_addr = htonl(0xe8000001),
				 .imr_ifindex = NET_LOOPBACK};
	int fd = MUST(socket(AF_INET, SOCK_DGRAM, 0));

	(void)i;
	MUST(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group)));
	return fd;
}

KIND(mcast4_same, "sockets", "UDP socket that joined one and the same IPv4 group", .shape = ON_ONE,
     .limit = "nofile", .needs = "CONFIG_INET", .prepare = net_namespace_kept, .open = open_one);
