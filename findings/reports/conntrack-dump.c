// SPDX-License-Identifier: GPL-2.0
/*
 * Remove the connections of PODS pods, each of which has two, while the table has N connections of
 * others: as the library does that reads the whole table to find those of one address.
 * Needs the modules crc32c_generic, nf_conntrack and nf_conntrack_netlink, and root.
 * N: connections that stay (default 1000). PODS: pods that are removed (default 10).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH 64

static char in[1 << 17];

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void load(const char *module)
{
	pid_t pid = fork();

	if (!pid) {
		int null = open("/dev/null", O_WRONLY);

		if (null >= 0)
			dup2(null, 2);
		execlp("modprobe", "modprobe", module, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void write_number(const char *path, long value, int required)
{
	FILE *file = fopen(path, "w");

	if (!file || fprintf(file, "%ld", value) < 0 || fclose(file)) {
		if (required)
			die(path);
	}
}

static long read_number(const char *path)
{
	FILE *file = fopen(path, "r");
	long value;

	if (!file || fscanf(file, "%ld", &value) != 1)
		die(path);
	fclose(file);
	return value;
}

static void put(struct nlmsghdr *header, int type, const void *data, size_t size)
{
	struct nlattr *attr = (void *)((char *)header + NLMSG_ALIGN(header->nlmsg_len));

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + size;
	memset((char *)attr + NLA_HDRLEN, 0, NLA_ALIGN(size));
	if (size)
		memcpy((char *)attr + NLA_HDRLEN, data, size);
	header->nlmsg_len = NLMSG_ALIGN(header->nlmsg_len) + NLA_ALIGN(attr->nla_len);
}

static struct nlattr *nest(struct nlmsghdr *header, int type)
{
	struct nlattr *attr = (void *)((char *)header + NLMSG_ALIGN(header->nlmsg_len));

	put(header, type | NLA_F_NESTED, NULL, 0);
	return attr;
}

static void end_nest(struct nlmsghdr *header, struct nlattr *attr)
{
	attr->nla_len = (char *)header + header->nlmsg_len - (char *)attr;
}

/* Addresses and ports are in the order of the network. */
static void put_tuple(struct nlmsghdr *header, int type, uint32_t from, uint32_t to,
		      uint16_t from_port, uint16_t to_port)
{
	struct nlattr *tuple = nest(header, type), *part;
	uint8_t udp = IPPROTO_UDP;

	part = nest(header, CTA_TUPLE_IP);
	put(header, CTA_IP_V4_SRC, &from, sizeof(from));
	put(header, CTA_IP_V4_DST, &to, sizeof(to));
	end_nest(header, part);
	part = nest(header, CTA_TUPLE_PROTO);
	put(header, CTA_PROTO_NUM, &udp, sizeof(udp));
	put(header, CTA_PROTO_SRC_PORT, &from_port, sizeof(from_port));
	put(header, CTA_PROTO_DST_PORT, &to_port, sizeof(to_port));
	end_nest(header, part);
	end_nest(header, tuple);
}

static struct nlmsghdr *begin_message(void *where, int command, int flags)
{
	struct nlmsghdr *header = where;
	struct nfgenmsg *family;

	memset(header, 0, NLMSG_LENGTH(sizeof(*family)));
	header->nlmsg_len = NLMSG_LENGTH(sizeof(*family));
	header->nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | command;
	header->nlmsg_flags = NLM_F_REQUEST | flags;
	family = NLMSG_DATA(header);
	family->nfgen_family = AF_INET;
	family->version = NFNETLINK_V0;
	return header;
}

/* Read answers until the kernel has acknowledged "acks" messages. */
static void acknowledged(int sock, int acks)
{
	while (acks) {
		int got = recv(sock, in, sizeof(in), 0);
		struct nlmsghdr *header = (void *)in;

		if (got < 0)
			die("receive from netlink");
		for (; NLMSG_OK(header, (unsigned int)got); header = NLMSG_NEXT(header, got)) {
			if (header->nlmsg_type != NLMSG_ERROR)
				continue;
			errno = -((struct nlmsgerr *)NLMSG_DATA(header))->error;
			if (errno)
				die("nf_conntrack");
			acks--;
		}
	}
}

/* Add "count" connections from "source" (in the order of the host), with different ports. */
static void add(int sock, uint32_t source, int count)
{
	static char out[BATCH * 256];
	uint32_t from = htonl(source), to = htonl(0xc6120001); /* 198.18.0.1 */
	uint32_t timeout = htonl(3600);
	size_t size = 0;
	int i;

	for (i = 0; i < count; i++) {
		struct nlmsghdr *header = begin_message(out + size, IPCTNL_MSG_CT_NEW,
							NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK);
		uint16_t port = htons(1024 + i);

		put_tuple(header, CTA_TUPLE_ORIG, from, to, port, htons(53));
		put_tuple(header, CTA_TUPLE_REPLY, to, from, htons(53), port);
		put(header, CTA_TIMEOUT, &timeout, sizeof(timeout));
		size += NLMSG_ALIGN(header->nlmsg_len);
	}
	if (send(sock, out, size, 0) != (ssize_t)size)
		die("send to netlink");
	acknowledged(sock, count);
}

/* Return the source address in a connection of a dump, in the order of the host; 0 if none. */
static uint32_t source_of(struct nlmsghdr *header)
{
	struct nlattr *attr = (void *)((char *)NLMSG_DATA(header) + sizeof(struct nfgenmsg));
	int types[] = {CTA_TUPLE_ORIG, CTA_TUPLE_IP, CTA_IP_V4_SRC}, level = 0;
	char *end = (char *)header + header->nlmsg_len;

	while ((char *)attr + NLA_HDRLEN <= end && attr->nla_len >= NLA_HDRLEN) {
		if ((attr->nla_type & NLA_TYPE_MASK) != types[level]) {
			attr = (void *)((char *)attr + NLA_ALIGN(attr->nla_len));
			continue;
		}
		if (level == 2)
			return ntohl(*(uint32_t *)((char *)attr + NLA_HDRLEN));
		level++;
		end = (char *)attr + attr->nla_len;
		attr = (void *)((char *)attr + NLA_HDRLEN);
	}
	return 0;
}

/* Read the whole table. Return the number of its connections, and of those from "source". */
static long dump(int sock, uint32_t source, int *found)
{
	char out[64];
	struct nlmsghdr *header = begin_message(out, IPCTNL_MSG_CT_GET, NLM_F_DUMP);
	long all = 0;

	*found = 0;
	if (send(sock, out, header->nlmsg_len, 0) != (ssize_t)header->nlmsg_len)
		die("send to netlink");
	for (;;) {
		int got = recv(sock, in, sizeof(in), 0);

		if (got < 0)
			die("receive from netlink");
		for (header = (void *)in; NLMSG_OK(header, (unsigned int)got);
		     header = NLMSG_NEXT(header, got)) {
			if (header->nlmsg_type == NLMSG_DONE)
				return all;
			if (header->nlmsg_type == NLMSG_ERROR) {
				errno = -((struct nlmsgerr *)NLMSG_DATA(header))->error;
				die("dump");
			}
			all++;
			*found += source_of(header) == source;
		}
	}
}

static void remove_one(int sock, uint32_t source, int i)
{
	char out[256];
	struct nlmsghdr *header = begin_message(out, IPCTNL_MSG_CT_DELETE, NLM_F_ACK);

	put_tuple(header, CTA_TUPLE_ORIG, htonl(source), htonl(0xc6120001), htons(1024 + i),
		  htons(53));
	if (send(sock, out, header->nlmsg_len, 0) != (ssize_t)header->nlmsg_len)
		die("send to netlink");
	acknowledged(sock, 1);
}

int main(void)
{
	long n = atol(getenv("N") ?: "1000"), pods = atol(getenv("PODS") ?: "10"), i, left;
	const uint32_t others = 0x0a000000, pod = 0x0a800000; /* 10.0.0.0, 10.128.0.0 */
	struct timeval patience = {60, 0};
	long long begin, dumped = 0, took;
	int sock, found, size = 1 << 20;

	if (n < 1 || pods < 1 || pods > 250)
		return 1;
	load("crc32c_generic");
	load("nf_conntrack");
	load("nf_conntrack_netlink");
	write_number("/proc/sys/net/netfilter/nf_conntrack_max", 2 * n + 100000, 1);
	/* As many buckets as a machine with 4 GB has. */
	write_number("/sys/module/nf_conntrack/parameters/hashsize", 65536, 0);
	sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (sock < 0)
		die("netlink");
	setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));

	for (i = 0, left = n; left > 0; i++, left -= BATCH)
		add(sock, others + i, left < BATCH ? left : BATCH);
	for (i = 0; i < pods; i++)
		add(sock, pod + i, 2);
	if (read_number("/proc/sys/net/netfilter/nf_conntrack_count") < n + 2 * pods) {
		fprintf(stderr, "the table is not as large as it should be\n");
		return 1;
	}

	begin = now_ns();
	for (i = 0; i < pods; i++) {
		long long from = now_ns();

		if (dump(sock, pod + i, &found) < n || found != 2) {
			fprintf(stderr, "the table does not have the connections of pod %ld\n", i);
			return 1;
		}
		dumped += now_ns() - from;
		remove_one(sock, pod + i, 0);
		remove_one(sock, pod + i, 1);
	}
	took = now_ns() - begin;
	printf("remove_ns %lld ns\n", took);
	printf("dump_ns %lld ns\n", dumped / pods);
	return 0;
}
