// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static void add(int64_t i)
{
	tcp_add(i);
	MUST(write(tcp.ends[i][0], "unread", 6));
}

KIND(tcp_queued, "sockets", "TCP connection over loopback with data that no process has read",
     .shape = OF_ONE, .limit = "nofile", .needs = "CONFIG_INET", .most = 28000, .exit = true,
     .prepare = tcp_prepare, .add = add, .remove = tcp_remove);
