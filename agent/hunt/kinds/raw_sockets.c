// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

static int open_one(int64_t i)
{
	(void)i;
	return MUST(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
}

KIND(raw_sockets, "sockets", "raw socket of one protocol", .shape = ON_ONE, .limit = "nofile",
     .needs = "CONFIG_INET", .prepare = net_namespace_kept, .open = open_one);
