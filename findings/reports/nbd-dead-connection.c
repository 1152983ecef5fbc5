// SPDX-License-Identifier: GPL-2.0
/*
 * The server of a network block device goes away. A process that reads the device is killed, and
 * stays until the kernel no longer expects a new connection.
 * Needs the module nbd (modprobe nbd) and root. The connection is a pair of UNIX sockets.
 * N: seconds for which the kernel waits for a new connection, dead_conn_timeout (default 2).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/nbd-netlink.h>
#include <linux/nbd.h>
#include <linux/netlink.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define INDEX 0
#define SIZE (64ULL << 20)

/* As in linux/nbd.h, where the name of the third field depends on the version. */
struct request {
	uint32_t magic, type;
	char cookie[8];
	uint64_t from;
	uint32_t len;
} __attribute__((packed));

struct answer {
	uint32_t magic, error;
	char cookie[8];
} __attribute__((packed));

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

static void sleep_ms(long ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
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

/* A message of generic netlink. */
struct message {
	struct nlmsghdr header;
	struct genlmsghdr generic;
	char attributes[512];
};

static void *put(struct message *m, int type, const void *data, size_t size)
{
	struct nlattr *attr = (void *)((char *)m + NLMSG_ALIGN(m->header.nlmsg_len));

	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + size;
	if (size)
		memcpy((char *)attr + NLA_HDRLEN, data, size);
	m->header.nlmsg_len = NLMSG_ALIGN(m->header.nlmsg_len) + NLA_ALIGN(attr->nla_len);
	return attr;
}

static void put_u32(struct message *m, int type, uint32_t value)
{
	put(m, type, &value, sizeof(value));
}

static void put_u64(struct message *m, int type, uint64_t value)
{
	put(m, type, &value, sizeof(value));
}

/* What was put since "nest" becomes its content. */
static void end_nest(struct message *m, struct nlattr *nest)
{
	nest->nla_len = (char *)m + m->header.nlmsg_len - (char *)nest;
}

static void begin_message(struct message *m, int type, int flags, int command, int version)
{
	memset(m, 0, sizeof(*m));
	m->header.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	m->header.nlmsg_type = type;
	m->header.nlmsg_flags = NLM_F_REQUEST | flags;
	m->header.nlmsg_seq = 1;
	m->generic.cmd = command;
	m->generic.version = version;
}

static void send_message(int sock, struct message *m)
{
	if (send(sock, m, m->header.nlmsg_len, 0) != (ssize_t)m->header.nlmsg_len)
		die("send to netlink");
}

/* Return the number of the family "nbd" of generic netlink. */
static int nbd_family(int sock)
{
	char in[4096];
	struct message m;
	struct nlmsghdr *header = (void *)in;
	struct nlattr *attr;
	int left, got;

	begin_message(&m, GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY, 1);
	put(&m, CTRL_ATTR_FAMILY_NAME, NBD_GENL_FAMILY_NAME, sizeof(NBD_GENL_FAMILY_NAME));
	send_message(sock, &m);
	got = recv(sock, in, sizeof(in), 0);
	if (got < (int)sizeof(*header))
		die("receive from netlink");
	if (header->nlmsg_type == NLMSG_ERROR) {
		errno = -((struct nlmsgerr *)NLMSG_DATA(header))->error;
		die("the netlink family nbd (is the module loaded?)");
	}
	attr = (void *)((char *)NLMSG_DATA(header) + GENL_HDRLEN);
	left = header->nlmsg_len - NLMSG_LENGTH(GENL_HDRLEN);
	while (left >= NLA_HDRLEN && attr->nla_len >= NLA_HDRLEN) {
		if ((attr->nla_type & NLA_TYPE_MASK) == CTRL_ATTR_FAMILY_ID)
			return *(uint16_t *)((char *)attr + NLA_HDRLEN);
		left -= NLA_ALIGN(attr->nla_len);
		attr = (void *)((char *)attr + NLA_ALIGN(attr->nla_len));
	}
	fprintf(stderr, "the netlink family nbd has no number\n");
	exit(1);
}

static void connect_device(int fd, uint64_t dead_s)
{
	int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	struct nlattr *sockets, *item;
	struct nlmsghdr *header;
	struct message m;
	char in[4096];
	int got, family;

	if (sock < 0)
		die("netlink");
	family = nbd_family(sock);
	begin_message(&m, family, NLM_F_ACK, NBD_CMD_CONNECT, 1);
	put_u32(&m, NBD_ATTR_INDEX, INDEX);
	put_u64(&m, NBD_ATTR_SIZE_BYTES, SIZE);
	put_u64(&m, NBD_ATTR_BLOCK_SIZE_BYTES, 4096);
	put_u64(&m, NBD_ATTR_DEAD_CONN_TIMEOUT, dead_s);
	put_u64(&m, NBD_ATTR_SERVER_FLAGS, NBD_FLAG_HAS_FLAGS);
	sockets = put(&m, NBD_ATTR_SOCKETS | NLA_F_NESTED, NULL, 0);
	item = put(&m, NBD_SOCK_ITEM | NLA_F_NESTED, NULL, 0);
	put_u32(&m, NBD_SOCK_FD, fd);
	end_nest(&m, item);
	end_nest(&m, sockets);
	send_message(sock, &m);
	/* The acknowledgement, perhaps after a message with the index. */
	for (;;) {
		got = recv(sock, in, sizeof(in), 0);
		if (got < (int)sizeof(*header))
			die("receive from netlink");
		for (header = (void *)in; NLMSG_OK(header, (unsigned int)got);
		     header = NLMSG_NEXT(header, got)) {
			if (header->nlmsg_type != NLMSG_ERROR)
				continue;
			errno = -((struct nlmsgerr *)NLMSG_DATA(header))->error;
			if (errno)
				die("NBD_CMD_CONNECT");
			close(sock);
			return;
		}
	}
}

static int whole(int fd, void *data, size_t size, int writes)
{
	size_t done = 0;

	while (done < size) {
		ssize_t step = writes ? write(fd, (char *)data + done, size - done)
				      : read(fd, (char *)data + done, size - done);

		if (step <= 0)
			return -1;
		done += step;
	}
	return 0;
}

/* Answer reads with zeros until the process is killed. */
static void serve(int fd)
{
	static char zeros[1 << 20];
	struct request request;
	struct answer answer;
	uint32_t size;

	while (!whole(fd, &request, sizeof(request), 0)) {
		size = ntohl(request.len);
		answer.magic = htonl(NBD_REPLY_MAGIC);
		answer.error = 0;
		memcpy(answer.cookie, request.cookie, sizeof(answer.cookie));
		if ((ntohl(request.type) & 0xffff) != NBD_CMD_READ || size > sizeof(zeros))
			answer.error = htonl(22);
		if (whole(fd, &answer, sizeof(answer), 1) ||
		    (!answer.error && whole(fd, zeros, size, 1)))
			break;
	}
	_exit(0);
}

static int open_device(void)
{
	unsigned int major_nr, minor_nr;
	char path[64];
	FILE *file;
	int fd;

	snprintf(path, sizeof(path), "/sys/block/nbd%d/dev", INDEX);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%u:%u", &major_nr, &minor_nr) != 2)
		die(path);
	fclose(file);
	unlink("/kt-nbd");
	if (mknod("/kt-nbd", S_IFBLK | 0600, makedev(major_nr, minor_nr)))
		die("/kt-nbd");
	fd = open("/kt-nbd", O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (fd < 0)
		die("open the device");
	return fd;
}

int main(void)
{
	long dead_s = atol(getenv("N") ?: "2");
	int sv[2], ready[2], fd, status;
	long long begin, took;
	pid_t server, reader;
	void *block;
	char c;

	if (dead_s < 1)
		return 1;
	load("nbd");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) || pipe(ready) ||
	    posix_memalign(&block, 4096, 4096))
		die("setup");
	server = fork();
	if (server < 0)
		die("fork");
	if (!server) {
		close(sv[0]);
		serve(sv[1]);
	}
	close(sv[1]);
	connect_device(sv[0], dead_s);
	close(sv[0]);
	/* The first open reads a table of partitions: the server must still answer. */
	fd = open_device();
	if (pread(fd, block, 4096, 1 << 20) != 4096)
		die("read while the server is there");

	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	sleep_ms(300);

	reader = fork();
	if (reader < 0)
		die("fork");
	if (!reader) {
		close(ready[0]);
		if (write(ready[1], "r", 1) != 1)
			_exit(2);
		/* It cannot succeed. */
		_exit(pread(fd, block, 4096, 2 << 20) == 4096 ? 3 : 0);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		die("the reader");
	sleep_ms(100);
	begin = now_ns();
	kill(reader, SIGKILL);
	if (waitpid(reader, &status, 0) != reader)
		die("waitpid");
	took = now_ns() - begin;
	if (WIFEXITED(status)) {
		fprintf(stderr, "the read ended before the signal, with %d\n", WEXITSTATUS(status));
		return 1;
	}
	printf("exit_ns %lld ns\n", took);
	return 0;
}
