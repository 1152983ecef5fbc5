/* SPDX-License-Identifier: GPL-2.0 */
/* A network namespace of the owner's own, and requests to rtnetlink in it. */
#ifndef KTEARDOWN_HUNT_NETLINK_H
#define KTEARDOWN_HUNT_NETLINK_H

#include "hunt/kind.h"

#include <arpa/inet.h>
#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <sys/socket.h>

/* The devices of a kind are in one group, so that one request removes all. */
#define NET_GROUP 42
/* The index of the device that all objects of a kind are attached to; object i has NET_FIRST + i.
 */
#define NET_FIRST 1000
#define NET_LOOPBACK 1

static struct {
	int fd;
	union {
		struct nlmsghdr head;
		char bytes[2048];
	} message;
} net;

/* Begins a request. */
static inline void net_request(int type, const void *body, int len)
{
	struct nlmsghdr *head = &net.message.head;
	bool removes = type == RTM_DELLINK || type == RTM_DELADDR || type == RTM_DELROUTE ||
		       type == RTM_DELNEIGH || type == RTM_DELRULE || type == RTM_DELTCLASS ||
		       type == RTM_DELTFILTER || type == RTM_DELQDISC || type == RTM_DELNEXTHOP;

	memset(&net.message, 0, sizeof(net.message));
	head->nlmsg_type = type;
	head->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | (removes ? 0 : NLM_F_CREATE);
	head->nlmsg_len = NLMSG_LENGTH(len);
	memcpy(NLMSG_DATA(head), body, len);
}

static inline struct rtattr *net_attribute(int type, const void *data, int len)
{
	struct nlmsghdr *head = &net.message.head;
	struct rtattr *a = (void *)(net.message.bytes + NLMSG_ALIGN(head->nlmsg_len));

	a->rta_type = type;
	a->rta_len = RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(a), data, len);
	head->nlmsg_len = NLMSG_ALIGN(head->nlmsg_len) + RTA_ALIGN(a->rta_len);
	return a;
}

static inline void net_attribute_u32(int type, uint32_t value)
{
	net_attribute(type, &value, sizeof(value));
}

/* Ends an attribute that others are nested in. */
static inline void net_nested(struct rtattr *a)
{
	a->rta_len = net.message.bytes + net.message.head.nlmsg_len - (char *)a;
}

/* Sends the request; 0, or -1 and errno. */
static inline int net_send(void)
{
	char answer[8192];
	struct nlmsghdr *head = (void *)answer;
	struct nlmsgerr *error = NLMSG_DATA(head);

	MUST(send(net.fd, &net.message, net.message.head.nlmsg_len, 0));
	MUST(recv(net.fd, answer, sizeof(answer), 0));
	if (head->nlmsg_type != NLMSG_ERROR || !error->error)
		return 0;
	errno = -error->error;
	return -1;
}

/* -- the namespace -- */

/*
 * A namespace whose loopback device is up. If it is `kept`, another process keeps it beyond the
 * owner's exit, which then releases sockets only.
 */
static inline void net_namespace(bool kept)
{
	static const char *const limits[] = {"core/somaxconn", "core/optmem_max",
					     "ipv4/igmp_max_memberships", "ipv4/igmp_max_msf"};
	struct ifinfomsg body = {
		.ifi_index = NET_LOOPBACK, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
	char path[64];
	size_t i;

	new_namespaces(CLONE_NEWNET);
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		snprintf(path, sizeof(path), "/proc/sys/net/%s", limits[i]);
		put_file(path, "1000000");
	}
	net.fd = MUST(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
	net_request(RTM_NEWLINK, &body, sizeof(body));
	MUST(net_send());
	if (kept && !child(0, false))
		wait_to_be_killed();
}

/* For prepare(). */
static inline void net_namespace_kept(void)
{
	net_namespace(true);
}

static inline void net_namespace_own(void)
{
	net_namespace(false);
}

static inline void net_without_ipv6(void)
{
	net_namespace(false);
	put_file("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
}

/* -- devices -- */

/* Begins a request for a new device; attributes of its kind may follow, then net_link_end(). */
static inline struct rtattr *net_link_begin(const char *kind, int index, bool up)
{
	struct ifinfomsg body = {
		.ifi_index = index, .ifi_flags = up ? IFF_UP : 0, .ifi_change = up ? IFF_UP : 0};
	struct rtattr *info;
	char name[16];

	net_request(RTM_NEWLINK, &body, sizeof(body));
	snprintf(name, sizeof(name), "hunt%d", index);
	net_attribute(IFLA_IFNAME, name, strlen(name) + 1);
	net_attribute_u32(IFLA_GROUP, NET_GROUP);
	info = net_attribute(IFLA_LINKINFO, NULL, 0);
	net_attribute(IFLA_INFO_KIND, kind, strlen(kind));
	return info;
}

static inline void net_link_end(struct rtattr *info)
{
	net_nested(info);
	MUST(net_send());
}

static inline void net_link(const char *kind, int index, bool up)
{
	net_link_end(net_link_begin(kind, index, up));
}

static inline void net_unlink(int index)
{
	struct ifinfomsg body = {.ifi_index = index};

	net_request(RTM_DELLINK, &body, sizeof(body));
	MUST(net_send());
}

/* For remove() of kinds whose object i is a device. */
static inline void net_unlink_object(int64_t i)
{
	net_unlink(NET_FIRST + i);
}

/* For release() of kinds whose objects are devices. */
static inline void net_unlink_group(void)
{
	struct ifinfomsg body = {0};

	net_request(RTM_DELLINK, &body, sizeof(body));
	net_attribute_u32(IFLA_GROUP, NET_GROUP);
	MUST(net_send());
}

/* For prepare() and release() of kinds whose objects are attached to one device. */
static inline void net_one_device(void)
{
	net_namespace(false);
	net_link("dummy", NET_FIRST, true);
}

static inline void net_unlink_one(void)
{
	net_unlink(NET_FIRST);
}

/* -- what devices have; `type` is RTM_NEW... or RTM_DEL... -- */

static inline void net_address4(int type, int index, uint32_t address, int prefix)
{
	struct ifaddrmsg body = {
		.ifa_family = AF_INET, .ifa_prefixlen = prefix, .ifa_index = index};

	net_request(type, &body, sizeof(body));
	net_attribute_u32(IFA_LOCAL, htonl(address));
	net_attribute_u32(IFA_ADDRESS, htonl(address));
	MUST(net_send());
}

/* An address below fd00::. */
static inline void net_ip6(uint32_t *words, uint32_t high, uint32_t low)
{
	words[0] = htonl(0xfd000000);
	words[1] = htonl(high);
	words[2] = 0;
	words[3] = htonl(low);
}

static inline void net_address6(int type, int index, uint32_t high, uint32_t low)
{
	struct ifaddrmsg body = {.ifa_family = AF_INET6,
				 .ifa_prefixlen = 64,
				 .ifa_index = index,
				 .ifa_flags = IFA_F_NODAD};
	uint32_t words[4];

	net_ip6(words, high, low);
	net_request(type, &body, sizeof(body));
	net_attribute(IFA_LOCAL, words, sizeof(words));
	net_attribute(IFA_ADDRESS, words, sizeof(words));
	MUST(net_send());
}

/* An address as an attribute: 10.0.0.0 + low, or fd00::low. */
static inline void net_attribute_ip(int type, int family, uint32_t low)
{
	uint32_t words[4];

	if (family == AF_INET) {
		net_attribute_u32(type, htonl(0x0a000000 + low));
		return;
	}
	net_ip6(words, 0, low);
	net_attribute(type, words, sizeof(words));
}

static inline void net_neighbour(int type, int family, int index, uint32_t low)
{
	struct ndmsg body = {
		.ndm_family = family, .ndm_ifindex = index, .ndm_state = NUD_PERMANENT};

	net_request(type, &body, sizeof(body));
	net_attribute_ip(NDA_DST, family, low);
	net_attribute(NDA_LLADDR, "\2\0\0\0\0\1", 6);
	MUST(net_send());
}

static inline void net_route(int type, int family, int index, uint32_t low)
{
	struct rtmsg body = {.rtm_family = family,
			     .rtm_dst_len = family == AF_INET ? 32 : 128,
			     .rtm_table = RT_TABLE_MAIN,
			     .rtm_protocol = RTPROT_STATIC,
			     .rtm_scope = family == AF_INET ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE,
			     .rtm_type = RTN_UNICAST};

	net_request(type, &body, sizeof(body));
	net_attribute_ip(RTA_DST, family, low);
	net_attribute_u32(RTA_OIF, index);
	MUST(net_send());
}

/* A rule of priority `low` for packets from the address `low`. */
static inline void net_rule(int type, int family, uint32_t low)
{
	struct rtmsg body = {.rtm_family = family,
			     .rtm_src_len = family == AF_INET ? 32 : 128,
			     .rtm_table = RT_TABLE_MAIN,
			     .rtm_type = RTN_UNICAST};

	net_request(type, &body, sizeof(body));
	net_attribute_ip(FRA_SRC, family, low);
	net_attribute_u32(FRA_PRIORITY, low);
	MUST(net_send());
}

#endif
