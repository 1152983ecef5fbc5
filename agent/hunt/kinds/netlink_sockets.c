// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int open_one(int64_t i)
{
	struct sockaddr_nl any = {.nl_family = AF_NETLINK};
	int fd = MUST(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));

	(void)i;
	MUST(bind(fd, (void *)&any, sizeof(any)));
	return fd;
}

KIND(netlink_sockets, "sockets", "rtnetlink socket", .shape = OF_ONE, .limit = "nofile",
     .needs = "CONFIG_NET", .open = open_one);
