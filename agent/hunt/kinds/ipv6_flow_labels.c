// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/sockets.h"

#include <linux/in6.h>

static int fd;

static void prepare(void)
{
	net_namespace_kept();
	fd = MUST(socket(AF_INET6, SOCK_DGRAM, 0));
}

static void change(int action, int64_t i)
{
	struct in6_flowlabel_req request = {.flr_label = htonl(i + 1),
					    .flr_action = action,
					    .flr_share = IPV6_FL_S_EXCL,
					    .flr_flags = IPV6_FL_F_CREATE,
					    .flr_dst.s6_addr = {[15] = 1}};

	MUST(setsockopt(fd, IPPROTO_IPV6, IPV6_FLOWLABEL_MGR, &request, sizeof(request)));
}

static void add(int64_t i)
{
	change(IPV6_FL_A_GET, i);
}

static void remove_one(int64_t i)
{
	change(IPV6_FL_A_PUT, i);
}

KIND(ipv6_flow_labels, "sockets", "IPv6 flow label of one socket", .shape = OF_ONE,
     .limit = "memory", .needs = "CONFIG_IPV6", .most = 4000, .privileged = true, .exit = true,
     .prepare = prepare, .add = add, .remove = remove_one);
