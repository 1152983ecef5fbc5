// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int listening;

static void prepare(void)
{
	net_namespace_kept();
	listening = listener(0, 6000);
}

static void add(int64_t i)
{
	(void)i;
	connected(SOCK_STREAM, 6000);
}

static void release(void)
{
	close(listening);
}

KIND(tcp_not_accepted, "sockets", "TCP connection that the listener has not accepted",
     .shape = ON_ONE, .limit = "nofile", .needs = "CONFIG_INET", .most = 28000,
     .call = "close(listener)", .exit = true, .prepare = prepare, .add = add, .release = release);
