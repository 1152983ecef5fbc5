// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

/* The end that is closed first is in TIME_WAIT until the namespace of the owner is gone. */
static int listening;

static void prepare(void)
{
	net_namespace_own();
	put_file("/proc/sys/net/ipv4/tcp_max_tw_buckets", "1000000");
	listening = listener(SO_REUSEADDR, 6000);
}

static void add(int64_t i)
{
	int fd = connected(SOCK_STREAM, 6000), other = MUST(accept(listening, NULL, NULL));

	(void)i;
	close(fd);
	close(other);
}

KIND(tcp_time_wait, "sockets", "TCP connection in TIME_WAIT; its network namespace ends",
     .shape = ON_ONE, .limit = "tcp_max_tw_buckets", .needs = "CONFIG_INET", .most = 28000,
     .exit = true, .prepare = prepare, .add = add);
