// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int open_one(int64_t i)
{
	(void)i;
	return listener(SO_REUSEPORT, 6000);
}

KIND(tcp_listeners_reuseport, "sockets",
     "listening TCP socket that shares one port by SO_REUSEPORT", .shape = ON_ONE,
     .limit = "nofile", .needs = "CONFIG_INET", .prepare = net_namespace_kept, .open = open_one);
