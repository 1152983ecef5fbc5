// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int open_one(int64_t i)
{
	struct sockaddr_in to = loopback(1024 + i);
	int fd = bound(SOCK_DGRAM, 0, 1024 + i);

	MUST(sendto(fd, "x", 1, 0, (void *)&to, sizeof(to)));
	return fd;
}

KIND(udp_queued, "sockets", "UDP socket with a datagram in its queue", .shape = OF_ONE,
     .limit = "nofile", .needs = "CONFIG_INET", .prepare = net_namespace_kept, .open = open_one,
     .most = 64000);
