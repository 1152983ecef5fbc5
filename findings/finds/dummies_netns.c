// SPDX-License-Identifier: GPL-2.0
/* gcc -O2 -o dummies_netns dummies_netns.c && ./dummies_netns 1000 */
/* A network namespace of the owner's own, and requests to rtnetlink in it. */
#ifndef KTEARDOWN_HUNT_NETLINK_H
#define KTEARDOWN_HUNT_NETLINK_H

/*
 * A kind: a way to make many kernel objects, and to release them. Each is a file kinds/NAME.c,
 * and no other file is edited:
 *
 *	#include "hunt/kind.h"
 *
 *	#include <sys/file.h>
 *
 *	static int open_one(int64_t i)
 *	{
 *		int fd = MUST(open("file", O_RDWR | O_CREAT, 0600));
 *
 *		(void)i;
 *		MUST(flock(fd, LOCK_SH));
 *		return fd;
 *	}
 *
 *	KIND(flocks, "files", "open file of one inode with a shared flock", .shape = ON_ONE,
 *	     .limit = "nofile", .open = open_one);
 *
 * Its functions run in a process of their own, the owner, in an empty folder of its own. Only
 * libc is used here, since a kind is also made into a program of one file. This header comes
 * before those of the system, for _GNU_SOURCE.
 */
#ifndef KTEARDOWN_HUNT_KIND_H
#define KTEARDOWN_HUNT_KIND_H

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum shape {
	OF_ONE, /* one owner has all objects */
	ON_ONE, /* all objects are attached to one other object */
	OWNERS, /* as many owners as objects */
};

/*
 * The objects are made by open(), by add(), or all at once by make(). They are released in as
 * many ways as the kind has functions for:
 *
 *	exit      the owner is killed: always with open(), otherwise if `exit` is true
 *	oldest, youngest, random
 *	          one after another in this order: with remove(), or by close() after open()
 *	call      all at once with release()
 */
struct kind {
	const char *name, *part, *object;
	enum shape shape;
	bool exit;
	bool privileged; /* an ordinary user cannot do it */
	bool timers; /* each object has a high-resolution timer; see idle_total_ns() */
	const char *limit; /* what limits the number of objects; src/kteardown_hunt/limits.py */
	const char *modules; /* that a distribution's kernel needs for it, with blanks between */
	const char *needs; /* the symbol (CONFIG_...) without which it fails */
	const char *call; /* what release() calls, in words */
	int64_t most; /* a limit that is in the kind or the kernel itself; 0: none */

	void (*prepare)(void); /* before the objects are made */
	int (*open)(int64_t i); /* returns the descriptor that holds object i */
	void (*add)(int64_t i);
	void (*make)(void);
	void (*remove)(int64_t i);
	void (*release)(void);
	/* How many objects still exist after the release; checked if it is there. */
	int64_t (*left)(void);

	/*
	 * What stays while the objects are released: stay() makes one of nr_residents in the owner,
	 * after prepare(). A kind that has it also works with no objects, and then releases none:
	 * what that costs is not paid for the objects. So residents may end in the same release, as
	 * the inodes of a file system do whose unmounting is the release of its watches.
	 */
	const char *resident; /* what one of them is */
	const char *residents_limit; /* as limit */
	int64_t most_residents; /* as most */
	void (*stay)(int64_t i);
};

/* Puts the kind into the list that the linker makes of the section "kinds". */
#define KIND(id, part_, object_, ...)                                                              \
	static const struct kind kind_##id = {                                                     \
		.name = #id, .part = part_, .object = object_, __VA_ARGS__};                       \
	static const struct kind *const kind_##id##_registered                                     \
		__attribute__((used, section("kinds"))) = &kind_##id

/* -- what a kind may use; all of it is in owner.c -- */

/* How many objects to make, and how many residents before them. */
extern int64_t nr_objects, nr_residents;

/* Ends the owner with a message if the call returns -1; otherwise returns its value. */
#define MUST(call)                                                                                 \
	({                                                                                         \
		long value_ = (long)(call);                                                        \
		if (value_ == -1)                                                                  \
			owner_failed(#call);                                                       \
		value_;                                                                            \
	})
__attribute__((noreturn)) void owner_failed(const char *call);

/* Writes a text to a file in one write. 0 or -errno. */
int put_file(const char *path, const char *text);
/* Makes an array of as many elements as there are objects, or of so many, in zeroed memory. */
void *array(size_t element);
void *array_of(int64_t number, size_t element);
/* unshare(), for an ordinary user together with a user namespace in which it is root. */
void new_namespaces(int flags);
/*
 * fork(), or a clone() with such flags: the child returns 0 and never goes on without the
 * owner's parent, since its parent's death kills it if `dies` is true.
 */
pid_t child(unsigned long flags, bool dies);
/* Sleeps until a signal kills the process. */
__attribute__((noreturn)) void wait_to_be_killed(void);
/* Lets a child say to its parent that it is ready: ready_wait() returns after ready_say(). */
void ready_make(void);
void ready_say(void);
void ready_wait(void);

#endif

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
/* Network namespaces that a descriptor keeps, beside the owner's own. */
#ifndef KTEARDOWN_HUNT_NETNS_BESIDE_H
#define KTEARDOWN_HUNT_NETNS_BESIDE_H

/* Namespaces, each of which a descriptor or a process keeps. */
#ifndef KTEARDOWN_HUNT_NAMESPACES_H
#define KTEARDOWN_HUNT_NAMESPACES_H


#include <sched.h>

static pid_t *namespace_pids;

/* For prepare(): an ordinary user makes the namespaces in a user namespace in which it is root. */
static inline void namespaces_prepare(void)
{
	new_namespaces(0);
	namespace_pids = array(sizeof(*namespace_pids));
}

/* A new namespace of the owner itself, which it leaves for the next one. */
static inline int namespace_open(int flag, const char *name)
{
	char path[64];

	MUST(unshare(flag));
	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	return MUST(open(path, O_RDONLY | O_CLOEXEC));
}

/* A process that is in new namespaces. */
static inline void namespace_add(int64_t i, int flags)
{
	namespace_pids[i] = child(flags, true);
	if (!namespace_pids[i])
		wait_to_be_killed();
}

/* For remove() */
static inline void namespace_remove(int64_t i)
{
	MUST(kill(namespace_pids[i], SIGKILL));
	MUST(waitpid(namespace_pids[i], NULL, 0));
}

/* A descriptor of the namespace of a child, which is ended. */
static inline int namespace_open_of_child(int flag, const char *name)
{
	char path[64];
	int fd;

	namespace_add(0, flag);
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", namespace_pids[0], name);
	fd = MUST(open(path, O_RDONLY | O_CLOEXEC));
	namespace_remove(0);
	return fd;
}

/* For release(): kills all processes, the youngest of which is waited for first. */
static inline void namespaces_release(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++)
		MUST(kill(namespace_pids[i], SIGKILL));
	for (i = nr_objects - 1; i >= 0; i--)
		MUST(waitpid(namespace_pids[i], NULL, 0));
}

#endif

static int netns_home = -1;

/* Makes one, and returns to the namespace of the first call. */
static inline int netns_beside(void)
{
	int fd;

	if (netns_home < 0)
		netns_home = MUST(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
	fd = namespace_open(CLONE_NEWNET, "net");
	MUST(setns(netns_home, CLONE_NEWNET));
	return fd;
}

#endif

static void add(int64_t i)
{
	net_link("dummy", NET_FIRST + i, true);
}

static void stay(int64_t i)
{
	(void)i;
	netns_beside();
}

KIND(dummies_netns, "netdevices", "dummy device of one network namespace beside others, no IPv6",
     .modules = "dummy", .shape = OF_ONE, .limit = "memory", .needs = "CONFIG_DUMMY",
     .call = "RTM_DELLINK of their group", .prepare = net_without_ipv6, .add = add,
     .remove = net_unlink_object, .release = net_unlink_group,
     .resident = "other network namespace, without devices of its own", .residents_limit = "netns",
     .most_residents = 512, .stay = stay);

/* The process that makes the objects of a kind, and releases them. */
#ifndef KTEARDOWN_HUNT_OWNER_H
#define KTEARDOWN_HUNT_OWNER_H


enum way { WAY_EXIT, WAY_CALL, WAY_OLDEST, WAY_YOUNGEST, WAY_RANDOM, NR_WAYS };

extern const char *const way_names[]; /* ended by NULL */

/* In memory that the owner shares with its parent. */
struct owner_report {
	int64_t made_ns; /* how long making took */
	int64_t start_ns, end_ns; /* of the release, unless it was by exit */
	int64_t left;
	/* How often it gave up the CPU until it had made its objects, and while it released them.
	 */
	int64_t made_waits, waits;
	int error; /* errno of the call that failed */
	char call[120]; /* that failed; empty: none */
};

struct owner_spec {
	const struct kind *kind;
	enum way way;
	int64_t objects, residents;
	uint64_t seed; /* of the random order */
	bool user; /* run as an ordinary user, within the limits that it has */
	const char *name; /* of its processes; NULL: that of the caller */
	int cpu; /* -1: any */
	const char *folder; /* an empty folder */
};

struct owner {
	struct owner_spec spec;
	struct owner_report *report;
	pid_t pid;
	int from, to;
};

/* The kind of this name, or of this index; NULL if there is none. */
const struct kind *kind_named(const char *name);
const struct kind *kind_at(int index);
bool kind_has_way(const struct kind *k, enum way way);

int64_t clock_ns(void);
/*
 * Starts the owner; when this returns, it has prepared what its kind needs. False: a call failed,
 * which is in the report.
 */
bool owner_start(struct owner *o, const struct owner_spec *spec);
/* When this returns, the owner has made its objects. False: a call failed. */
bool owner_make(struct owner *o);
/* Begins the release; owner_released() waits for its end. False: a call failed. */
void owner_release(struct owner *o);
bool owner_released(struct owner *o);
/* Kills the owner if it lives, and gives its memory back. Its report must not be used any more. */
void owner_end(struct owner *o);

#endif

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#define ORDINARY_UID 65534
/* What an ordinary user may have with systemd, on 16 GiB; also in src/kteardown_hunt/limits.py. */
#define DESCRIPTORS_OF_A_USER 524288
#define TASKS_OF_A_USER 42213

const char *const way_names[] = {"exit", "call", "oldest", "youngest", "random", NULL};
int64_t nr_objects, nr_residents;

static struct owner_report *report;
/* Used if no shared memory can be mapped. */
static struct owner_report unshared;
static bool ordinary_user;
static int ready_ends[2], to_parent = -1;

extern const struct kind *const __start_kinds[], *const __stop_kinds[];

const struct kind *kind_at(int index)
{
	return index < __stop_kinds - __start_kinds ? __start_kinds[index] : NULL;
}

const struct kind *kind_named(const char *name)
{
	const struct kind *k;
	int i;

	for (i = 0; (k = kind_at(i)); i++)
		if (!strcmp(k->name, name))
			break;
	return k;
}

bool kind_has_way(const struct kind *k, enum way way)
{
	switch (way) {
	case WAY_EXIT:
		return k->open || k->exit;
	case WAY_CALL:
		return k->release;
	default:
		return k->open || k->remove;
	}
}

int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* -- what kinds use -- */

static void note_failed(const char *call)
{
	report->error = errno;
	snprintf(report->call, sizeof(report->call), "%s", call);
}

void owner_failed(const char *call)
{
	note_failed(call);
	/* Children may hold the pipe open, so that its end would not be seen. */
	if (write(to_parent, "x", 1) != 1)
		abort();
	_exit(1);
}

int put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), error = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		error = -errno;
	close(fd);
	return error;
}

void *array_of(int64_t number, size_t element)
{
	/* None would be no mapping. */
	size_t size = (number ? number : 1) * element;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	MUST((long)memory);
	return memory;
}

void *array(size_t element)
{
	return array_of(nr_objects, element);
}

void new_namespaces(int flags)
{
	char uids[32], gids[32];

	if (!ordinary_user) {
		MUST(unshare(flags));
		return;
	}
	snprintf(uids, sizeof(uids), "0 %d 1", geteuid());
	snprintf(gids, sizeof(gids), "0 %d 1", getegid());
	MUST(unshare(flags | CLONE_NEWUSER));
	put_file("/proc/self/setgroups", "deny");
	MUST(put_file("/proc/self/uid_map", uids) ? -1 : 0);
	MUST(put_file("/proc/self/gid_map", gids) ? -1 : 0);
}

pid_t child(unsigned long flags, bool dies)
{
	pid_t pid = MUST(syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0));

	if (!pid && dies)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

void wait_to_be_killed(void)
{
	for (;;)
		pause();
}

void ready_make(void)
{
	MUST(pipe2(ready_ends, O_CLOEXEC));
}

void ready_say(void)
{
	MUST(write(ready_ends[1], "r", 1));
}

void ready_wait(void)
{
	char c;

	close(ready_ends[1]);
	if (read(ready_ends[0], &c, 1) != 1)
		owner_failed("read() from a child");
	close(ready_ends[0]);
}

/* -- limits -- */

static void raise_limit(int resource, rlim_t value)
{
	struct rlimit limit = {value, value};

	/* An ordinary user may only raise the soft limit. */
	if (setrlimit(resource, &limit) && !getrlimit(resource, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(resource, &limit);
	}
}

static void raise_limits_of_root(void)
{
	raise_limit(RLIMIT_NOFILE, 1000000);
	raise_limit(RLIMIT_NPROC, RLIM_INFINITY);
	raise_limit(RLIMIT_SIGPENDING, RLIM_INFINITY);
	raise_limit(RLIMIT_MSGQUEUE, RLIM_INFINITY);
	raise_limit(RLIMIT_MEMLOCK, RLIM_INFINITY);
}

static void become_ordinary_user(void)
{
	/* A reproducer may have been started by an ordinary user. */
	if (!geteuid()) {
		/* Those of the kernel itself are lower. */
		raise_limit(RLIMIT_NOFILE, DESCRIPTORS_OF_A_USER);
		raise_limit(RLIMIT_NPROC, TASKS_OF_A_USER);
		MUST(setgroups(0, NULL));
		MUST(setresgid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID));
		MUST(setresuid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID));
	}
	/* Otherwise the files of /proc/self belong to root. */
	prctl(PR_SET_DUMPABLE, 1);
	raise_limit(RLIMIT_NOFILE, RLIM_INFINITY);
}

/* -- the owner -- */

/* The order in which the objects are released one by one. */
static int32_t *order_of(const struct owner_spec *spec)
{
	int32_t *order = array(sizeof(*order));
	uint64_t random = spec->seed;
	int64_t i, n = nr_objects;

	for (i = 0; i < n; i++)
		order[i] = spec->way == WAY_YOUNGEST ? n - 1 - i : i;
	for (i = n - 1; i > 0 && spec->way == WAY_RANDOM; i--) {
		int64_t other;
		int32_t swapped = order[i];

		/* Knuth's generator; its upper bits are the good ones. */
		random = random * 6364136223846793005 + 1442695040888963407;
		other = (random >> 33) % (i + 1);
		order[i] = order[other];
		order[other] = swapped;
	}
	return order;
}

static void make_all(const struct kind *k, int32_t *fds)
{
	int64_t i;

	if (k->make)
		k->make();
	for (i = 0; i < nr_objects && k->open; i++)
		fds[i] = k->open(i);
	for (i = 0; i < nr_objects && k->add; i++)
		k->add(i);
}

static void release_all(const struct owner_spec *spec, const int32_t *fds, const int32_t *order)
{
	const struct kind *k = spec->kind;
	int64_t i;

	if (spec->way == WAY_CALL) {
		k->release();
		return;
	}
	for (i = 0; i < nr_objects; i++)
		if (k->remove)
			k->remove(order[i]);
		else
			close(fds[order[i]]);
}

/* How often this process gave up the CPU, and so did the children that it has waited for. */
static int64_t waits_so_far(void)
{
	struct rusage self, children;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return self.ru_nvcsw + children.ru_nvcsw;
}

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	MUST(sched_setaffinity(0, sizeof(set), &set));
}

static void own(const struct owner_spec *spec, int from, int to)
{
	const struct kind *k = spec->kind;
	int32_t *order = NULL, *fds;
	int64_t began, i;
	char c;

	to_parent = to;
	nr_objects = spec->objects;
	nr_residents = spec->residents;
	if (spec->name)
		prctl(PR_SET_NAME, spec->name);
	ordinary_user = spec->user;
	if (spec->cpu >= 0)
		stay_on(spec->cpu);
	if (spec->user)
		become_ordinary_user();
	else
		raise_limits_of_root();
	MUST(chdir(spec->folder));
	fds = array(sizeof(*fds));
	if (spec->way > WAY_CALL)
		order = order_of(spec);
	if (k->prepare)
		k->prepare();
	for (i = 0; i < nr_residents; i++)
		k->stay(i);
	MUST(write(to, "p", 1));
	if (read(from, &c, 1) != 1)
		wait_to_be_killed();
	began = clock_ns();
	make_all(k, fds);
	report->made_ns = clock_ns() - began;
	report->made_waits = waits_so_far();
	MUST(write(to, "m", 1));
	if (read(from, &c, 1) != 1 || spec->way == WAY_EXIT)
		wait_to_be_killed();
	/* Without the one in which it waited to be told. */
	report->made_waits = waits_so_far();
	report->start_ns = clock_ns();
	release_all(spec, fds, order);
	report->end_ns = clock_ns();
	report->waits = waits_so_far() - report->made_waits;
	if (k->left)
		report->left = k->left();
	MUST(write(to, "d", 1));
	wait_to_be_killed();
}

/* Whether the owner says `what`. False: a call failed, or it is dead; a child may hold its pipe. */
static bool says(struct owner *o, char what)
{
	int pidfd = syscall(SYS_pidfd_open, o->pid, 0);
	struct pollfd on[] = {{.fd = o->from, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
	char c = 0;

	if (pidfd >= 0) {
		poll(on, 2, -1);
		close(pidfd);
	}
	if (pidfd < 0 || on[0].revents & POLLIN)
		return read(o->from, &c, 1) == 1 && c == what;
	return false;
}

bool owner_start(struct owner *o, const struct owner_spec *spec)
{
	int up[2] = {-1, -1}, down[2] = {-1, -1};

	*o = (struct owner){.spec = *spec, .from = -1, .to = -1};
	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (report == MAP_FAILED) {
		o->report = report = &unshared;
		note_failed("mmap()");
		return false;
	}
	o->report = report;
	if (pipe2(up, O_CLOEXEC) || pipe2(down, O_CLOEXEC)) {
		note_failed("pipe2()");
		close(up[0]);
		close(up[1]);
		return false;
	}
	o->pid = fork();
	if (o->pid < 0)
		note_failed("fork()");
	if (!o->pid) {
		close(up[0]);
		close(down[1]);
		own(spec, down[0], up[1]);
	}
	close(up[1]);
	close(down[0]);
	o->from = up[0];
	o->to = down[1];
	return o->pid > 0 && says(o, 'p');
}

static void go_on(struct owner *o)
{
	if (write(o->to, "g", 1) != 1)
		o->report->error = errno;
}

bool owner_make(struct owner *o)
{
	go_on(o);
	return says(o, 'm');
}

void owner_release(struct owner *o)
{
	if (o->spec.way == WAY_EXIT)
		kill(o->pid, SIGKILL);
	else
		go_on(o);
}

bool owner_released(struct owner *o)
{
	struct rusage usage;

	if (o->spec.way != WAY_EXIT)
		return says(o, 'd');
	wait4(o->pid, NULL, 0, &usage);
	o->pid = 0;
	o->report->waits = usage.ru_nvcsw - o->report->made_waits;
	return true;
}

void owner_end(struct owner *o)
{
	if (o->pid > 0) {
		kill(o->pid, SIGKILL);
		waitpid(o->pid, NULL, 0);
	}
	close(o->from);
	close(o->to);
	if (o->report != &unshared)
		munmap(o->report, sizeof(*o->report));
}

/*
 * The main() of a program that shows one kind by itself: it makes N, 2N and 4N objects, releases
 * them, and prints how long the release took. With each doubling a linear cost doubles. With
 * residents, which stay until the objects are released, these double, and the objects do not.
 * "hold" in place of a way makes the objects and keeps them, for another such program.
 */

#include <ftw.h>
#include <sys/prctl.h>

static int delete_entry(const char *path, const struct stat *status, int type, struct FTW *at)
{
	(void)status;
	(void)type;
	(void)at;
	remove(path);
	return 0;
}

/* Waits until everything that descends from this process is gone. */
static void kill_descendants(void)
{
	char text[4096], *at;
	long pid;
	int fd, len;

	do {
		fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
		len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
		text[len > 0 ? len : 0] = '\0';
		close(fd);
		for (at = text; (pid = strtol(at, &at, 10)) > 0;)
			kill(pid, SIGKILL);
	} while (waitpid(-1, NULL, 0) > 0);
}

static int show(const struct owner_spec *spec)
{
	struct owner owner = {0};
	int64_t start, took;

	if (!owner_start(&owner, spec) || !owner_make(&owner)) {
		fprintf(stderr, "%s: %s\n", owner.report->call, strerror(owner.report->error));
		return 1;
	}
	start = clock_ns();
	owner_release(&owner);
	if (!owner_released(&owner)) {
		fprintf(stderr, "%s: %s\n", owner.report->call, strerror(owner.report->error));
		return 1;
	}
	took = clock_ns() - start;
	if (spec->way != WAY_EXIT)
		took = owner.report->end_ns - owner.report->start_ns;
	printf("%8lld objects", (long long)spec->objects);
	if (spec->kind->stay)
		printf(", %8lld residents", (long long)spec->residents);
	printf(": made in %9.3f ms, released in %9.3f ms\n", owner.report->made_ns / 1e6,
	       took / 1e6);
	fflush(stdout);
	owner_end(&owner);
	return 0;
}

/* Makes the objects, which then stay while another program releases its own. */
static int hold(struct owner_spec *spec)
{
	struct owner owner;

	spec->way = WAY_EXIT;
	if (!owner_start(&owner, spec) || !owner_make(&owner)) {
		fprintf(stderr, "%s: %s\n", owner.report->call, strerror(owner.report->error));
		return 1;
	}
	printf("%lld objects stay until this program is killed\n", (long long)spec->objects);
	fflush(stdout);
	wait_to_be_killed();
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/reproducer-XXXXXX";
	struct owner_spec spec = {.kind = kind_at(0), .cpu = -1, .folder = folder, .seed = 1};
	int64_t objects = argc > 1 ? atoll(argv[1]) : 1000;
	int64_t residents = argc > 3 ? atoll(argv[3]) : 0;
	int i, way = 0, status = 0;

	spec.user = geteuid() != 0;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (argc == 3 && objects > 0 && !strcmp(argv[2], "hold") && mkdtemp(folder)) {
		spec.objects = objects;
		return hold(&spec);
	}
	while (argc > 2 && way_names[way] && strcmp(argv[2], way_names[way]))
		way++;
	while (argc < 3 && !kind_has_way(spec.kind, way))
		way++;
	if (objects < 1 || way >= NR_WAYS || !kind_has_way(spec.kind, way) ||
	    (argc > 3 && (residents < 1 || !spec.kind->stay))) {
		fprintf(stderr, "usage: %s [OBJECTS [WAY%s]], ways: hold", argv[0],
			spec.kind->stay ? " [RESIDENTS]" : "");
		for (way = 0; way < NR_WAYS; way++)
			if (kind_has_way(spec.kind, way))
				fprintf(stderr, " %s", way_names[way]);
		fputc('\n', stderr);
		return 2;
	}
	spec.way = way;
	for (i = 0; i < 3 && !status; i++) {
		strcpy(folder + strlen(folder) - 6, "XXXXXX");
		if (!mkdtemp(folder))
			return perror(folder), 1;
		spec.objects = residents ? objects : objects << i;
		spec.residents = residents << i;
		status = show(&spec);
		/* After a failure too. */
		kill_descendants();
		nftw(folder, delete_entry, 16, FTW_DEPTH | FTW_MOUNT | FTW_PHYS);
	}
	return status;
}

