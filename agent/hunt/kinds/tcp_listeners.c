// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int open_one(int64_t i)
{
	return listener(0, 1024 + i);
}

KIND(tcp_listeners, "sockets", "listening TCP socket at a port of its own", .shape = OF_ONE,
     .limit = "nofile", .needs = "CONFIG_INET", .prepare = net_namespace_kept, .open = open_one,
     .most = 64000);
