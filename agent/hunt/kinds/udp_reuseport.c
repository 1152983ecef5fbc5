// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int open_one(int64_t i)
{
	(void)i;
	return bound(SOCK_DGRAM, SO_REUSEPORT, 5000);
}

KIND(udp_reuseport, "sockets", "UDP socket that shares one port by SO_REUSEPORT", .shape = ON_ONE,
     .limit = "nofile", .needs = "CONFIG_INET", .open = open_one);
