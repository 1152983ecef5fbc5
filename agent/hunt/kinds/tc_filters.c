// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/netlink.h"

#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>

#define ROOT 0x10000

/* Each filter has a priority of its own. */
static void change(int type, int64_t i)
{
	struct tcmsg body = {.tcm_ifindex = NET_FIRST,
			     .tcm_parent = ROOT,
			     .tcm_info = TC_H_MAKE((i + 1) << 16, htons(ETH_P_ALL))};

	net_request(type, &body, sizeof(body));
	net_attribute(TCA_KIND, "basic", 6);
	net_nested(net_attribute(TCA_OPTIONS, NULL, 0));
	MUST(net_send());
}

static void qdisc(int type)
{
	struct tcmsg body = {.tcm_ifindex = NET_FIRST, .tcm_parent = TC_H_ROOT, .tcm_handle = ROOT};
	struct tc_prio_qopt bands = {.bands = 3};

	net_request(type, &body, sizeof(body));
	if (type == RTM_NEWQDISC) {
		net_attribute(TCA_KIND, "prio", 5);
		net_attribute(TCA_OPTIONS, &bands, sizeof(bands));
	}
	MUST(net_send());
}

static void prepare(void)
{
	net_one_device();
	qdisc(RTM_NEWQDISC);
}

static void add(int64_t i)
{
	change(RTM_NEWTFILTER, i);
}

static void remove_one(int64_t i)
{
	change(RTM_DELTFILTER, i);
}

static void release(void)
{
	qdisc(RTM_DELQDISC);
}

KIND(tc_filters, "netdevices", "filter with a priority of its own on one queueing discipline",
     .modules = "sch_prio cls_basic dummy", .shape = ON_ONE, .limit = "memory",
     .needs = "CONFIG_NET_CLS_BASIC", .call = "RTM_DELQDISC", .most = 65000, .exit = true,
     .prepare = prepare, .add = add, .remove = remove_one, .release = release);
