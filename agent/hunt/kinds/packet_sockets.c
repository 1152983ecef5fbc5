// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

#include <linux/if_ether.h>

static int open_one(int64_t i)
{
	(void)i;
	return MUST(socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)));
}

KIND(packet_sockets, "sockets", "packet socket that receives all protocols", .shape = ON_ONE,
     .limit = "nofile", .needs = "CONFIG_PACKET", .prepare = net_namespace_kept, .open = open_one);
