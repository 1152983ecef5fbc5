// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int fd;

static void prepare(void)
{
	int big = 1 << 30;

	net_namespace_kept();
	fd = bound(SOCK_DGRAM, 0, 5000);
	MUST(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof(big)));
}

static void add(int64_t i)
{
	struct sockaddr_in to = loopback(5000);

	(void)i;
	MUST(sendto(fd, "x", 1, 0, (void *)&to, sizeof(to)));
}

static void release(void)
{
	close(fd);
}

KIND(udp_queue, "sockets", "datagram in the queue of one UDP socket", .shape = OF_ONE,
     .limit = "memory", .needs = "CONFIG_INET", .call = "close(socket)", .privileged = true,
     .exit = true, .prepare = prepare, .add = add, .release = release);
