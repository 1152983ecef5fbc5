// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int open_one(int64_t i)
{
	(void)i;
	return connected(SOCK_DGRAM, 5002);
}

KIND(udp_connected, "sockets", "UDP socket that is connected to one and the same port",
     .shape = ON_ONE, .limit = "nofile", .needs = "CONFIG_INET", .prepare = net_namespace_kept,
     .open = open_one, .most = 28000);
