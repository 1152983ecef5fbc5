// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int fd;

static void prepare(void)
{
	net_namespace_kept();
	fd = MUST(socket(AF_INET6, SOCK_DGRAM, 0));
}

static void change(int option, int64_t i)
{
	struct ipv6_mreq group = {.ipv6mr_multiaddr.s6_addr = {0xff, 5},
				  .ipv6mr_interface = NET_LOOPBACK};

	group.ipv6mr_multiaddr.s6_addr32[3] = htonl(i + 1);
	MUST(setsockopt(fd, IPPROTO_IPV6, option, &group, sizeof(group)));
}

static void add(int64_t i)
{
	change(IPV6_JOIN_GROUP, i);
}

static void remove_one(int64_t i)
{
	change(IPV6_LEAVE_GROUP, i);
}

KIND(mcast6_one, "sockets", "membership of one UDP socket in an IPv6 group", .shape = OF_ONE,
     .limit = "optmem_max", .needs = "CONFIG_IPV6", .exit = true, .prepare = prepare, .add = add,
     .remove = remove_one);
