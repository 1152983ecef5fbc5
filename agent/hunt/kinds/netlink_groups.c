// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int open_one(int64_t i)
{
	struct sockaddr_nl group = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	int fd = MUST(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));

	(void)i;
	MUST(bind(fd, (void *)&group, sizeof(group)));
	return fd;
}

KIND(netlink_groups, "sockets", "rtnetlink socket that joined one and the same multicast group",
     .shape = ON_ONE, .limit = "nofile", .needs = "CONFIG_NET", .open = open_one);
