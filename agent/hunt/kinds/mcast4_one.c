// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int fd;

static void prepare(void)
{
	net_namespace_kept();
	fd = MUST(socket(AF_INET, SOCK_DGRAM, 0));
}

static void change(int option, int64_t i)
{
	struct ip_mreqn group = {.imr_multiaddr.s_addr = htonl(0xe8000001 + i),
				 .imr_ifindex = NET_LOOPBACK};

	MUST(setsockopt(fd, IPPROTO_IP, option, &group, sizeof(group)));
}

static void add(int64_t i)
{
	change(IP_ADD_MEMBERSHIP, i);
}

static void remove_one(int64_t i)
{
	change(IP_DROP_MEMBERSHIP, i);
}

KIND(mcast4_one, "sockets", "membership of one UDP socket in an IPv4 group", .shape = OF_ONE,
     .limit = "igmp_max_memberships", .needs = "CONFIG_INET", .exit = true, .prepare = prepare,
     .add = add, .remove = remove_one);
