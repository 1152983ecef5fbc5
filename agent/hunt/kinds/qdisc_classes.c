// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

#include <linux/pkt_sched.h>

#define ROOT 0x10000

static void change(int type, uint32_t parent, uint32_t handle)
{
	struct tcmsg body = {.tcm_ifindex = NET_FIRST, .tcm_parent = parent, .tcm_handle = handle};
	struct tc_htb_opt opt = {.rate.rate = 1000000,
				 .ceil.rate = 1000000,
				 .buffer = 1000,
				 .cbuffer = 1000,
				 .quantum = 1500};
	struct tc_htb_glob global = {.version = 3, .rate2quantum = 10};
	struct rtattr *options;

	net_request(type, &body, sizeof(body));
	if (type == RTM_NEWQDISC || type == RTM_NEWTCLASS) {
		net_attribute(TCA_KIND, "htb", 4);
		options = net_attribute(TCA_OPTIONS, NULL, 0);
		if (type == RTM_NEWQDISC)
			net_attribute(TCA_HTB_INIT, &global, sizeof(global));
		else
			net_attribute(TCA_HTB_PARMS, &opt, sizeof(opt));
		net_nested(options);
	}
	MUST(net_send());
}

static void prepare(void)
{
	net_one_device();
	change(RTM_NEWQDISC, TC_H_ROOT, ROOT);
}

static void add(int64_t i)
{
	change(RTM_NEWTCLASS, ROOT, ROOT + 1 + i);
}

static void remove_one(int64_t i)
{
	change(RTM_DELTCLASS, 0, ROOT + 1 + i);
}

static void release(void)
{
	change(RTM_DELQDISC, TC_H_ROOT, ROOT);
}

KIND(qdisc_classes, "netdevices", "class of one HTB queueing discipline",
     .modules = "sch_htb dummy", .shape = OF_ONE, .limit = "memory", .needs = "CONFIG_NET_SCH_HTB",
     .call = "RTM_DELQDISC", .most = 65000, .exit = true, .prepare = prepare, .add = add,
     .remove = remove_one, .release = release);
