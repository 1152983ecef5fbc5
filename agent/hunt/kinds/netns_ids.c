// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"
#include "hunt/lib/netns_beside.h"

#include <linux/net_namespace.h>

/* Namespaces that have an id for each resident: M residents have 16 M ids, instead of M * M. */
#define NAMING 16

static int *fds, naming[NAMING];

static void prepare(void)
{
	int i;

	new_namespaces(CLONE_NEWNET);
	fds = array(sizeof(*fds));
	for (i = 0; i < NAMING; i++) {
		MUST(setns(netns_beside(), CLONE_NEWNET));
		naming[i] = MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
	}
	MUST(setns(netns_home, CLONE_NEWNET));
}

static void add(int64_t i)
{
	fds[i] = netns_beside();
}

static void remove_one(int64_t i)
{
	MUST(close(fds[i]));
}

static void release(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++)
		remove_one(i);
}

static void stay(int64_t i)
{
	struct rtgenmsg body = {.rtgen_family = AF_UNSPEC};
	int named = netns_beside(), n;

	for (n = 0; n < NAMING; n++) {
		net.fd = naming[n];
		net_request(RTM_NEWNSID, &body, sizeof(body));
		net_attribute_u32(NETNSA_NSID, i);
		net_attribute_u32(NETNSA_FD, named);
		MUST(net_send());
	}
}

KIND(netns_ids, "namespaces", "network namespace beside others with ids", .shape = OF_ONE,
     .limit = "netns", .needs = "CONFIG_NET_NS", .call = "close() of all", .prepare = prepare,
     .add = add, .remove = remove_one, .release = release,
     .resident = "network namespace with an id in 16 others", .residents_limit = "netns",
     .most_residents = 512, .stay = stay);
