// SPDX-License-Identifier: GPL-2.0
/*
 * sync(), which a suspend begins with, while a FUSE server cannot answer: it is in a frozen cgroup
 * for SECONDS, and one page of its file system is dirty.
 * Needs FUSE (built in, or modprobe fuse), /dev/fuse, cgroup v2 and root.
 * N: for how many seconds the server is frozen (default 2).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WHERE "/kt-fuse"
#define GROUPS_WHERE "/kt-cgroup"

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void reply(int dev, uint64_t unique, int error, const void *data, size_t size)
{
	char out[512];
	struct fuse_out_header header = {
		.len = sizeof(header) + size, .error = error, .unique = unique};

	memcpy(out, &header, sizeof(header));
	if (size)
		memcpy(out + sizeof(header), data, size);
	/* ENOENT: the request was given up meanwhile. */
	if (write(dev, out, header.len) < 0 && errno != ENOENT)
		die("write to /dev/fuse");
}

static struct fuse_attr attributes(uint64_t node)
{
	struct fuse_attr attr = {.ino = node, .nlink = 1, .blksize = 4096};

	attr.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
	return attr;
}

static void answer_init(int dev, uint64_t unique)
{
	struct fuse_init_out out = {.major = 7,
				    .minor = 31,
				    .flags = FUSE_WRITEBACK_CACHE | FUSE_BIG_WRITES,
				    .max_write = 4096,
				    .max_readahead = 4096};

	reply(dev, unique, 0, &out, sizeof(out));
}

static void answer_lookup(int dev, uint64_t unique, const char *name)
{
	struct fuse_entry_out out = {
		.nodeid = 2, .entry_valid = 3600, .attr_valid = 3600, .attr = attributes(2)};

	if (strcmp(name, "f"))
		reply(dev, unique, -ENOENT, NULL, 0);
	else
		reply(dev, unique, 0, &out, sizeof(out));
}

static void answer(int dev, const char *in)
{
	const struct fuse_in_header *header = (void *)in;
	const void *arg = in + sizeof(*header);
	struct fuse_attr_out attr = {.attr_valid = 3600, .attr = attributes(header->nodeid)};
	struct fuse_open_out opened = {.fh = 1};
	struct fuse_write_out written = {.size = 0};

	switch (header->opcode) {
	case FUSE_INIT:
		answer_init(dev, header->unique);
		break;
	case FUSE_LOOKUP:
		answer_lookup(dev, header->unique, arg);
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		reply(dev, header->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		reply(dev, header->unique, 0, &opened, sizeof(opened));
		break;
	case FUSE_WRITE:
		written.size = ((const struct fuse_write_in *)arg)->size;
		reply(dev, header->unique, 0, &written, sizeof(written));
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(dev, header->unique, -ENOSYS, NULL, 0);
	}
}

static void serve(int dev)
{
	static char in[65536];

	while (read(dev, in, sizeof(in)) > 0)
		answer(dev, in);
	_exit(0);
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

/* The server in a cgroup of its own. */
static pid_t start_server(void)
{
	char options[96], text[16];
	int dev = open("/dev/fuse", O_RDWR);
	pid_t pid;

	if (dev < 0)
		die("/dev/fuse");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0", dev);
	if (mkdir(WHERE, 0755) || mount("kt", WHERE, "fuse", 0, options))
		die("mount of fuse");
	if (mkdir(GROUPS_WHERE, 0755) || mount("none", GROUPS_WHERE, "cgroup2", 0, NULL) ||
	    mkdir(GROUPS_WHERE "/server", 0755))
		die("cgroup");
	pid = fork();
	if (!pid)
		serve(dev);
	close(dev);
	snprintf(text, sizeof(text), "%d", pid);
	write_text(GROUPS_WHERE "/server/cgroup.procs", text);
	return pid;
}

int main(void)
{
	int n = getenv("N") ? atoi(getenv("N")) : 2, fd;
	static char page[4096];
	double began;
	pid_t server = start_server(), thaw;

	fd = open(WHERE "/f", O_RDWR);
	if (fd < 0 || write(fd, page, sizeof(page)) != sizeof(page))
		die(WHERE "/f");
	write_text(GROUPS_WHERE "/server/cgroup.freeze", "1");
	usleep(100000);
	began = now_ms();
	thaw = fork();
	if (!thaw) {
		sleep(n);
		write_text(GROUPS_WHERE "/server/cgroup.freeze", "0");
		_exit(0);
	}
	sync();
	printf("sync %.3f ms\n", now_ms() - began);
	waitpid(thaw, NULL, 0);
	close(fd);
	umount2(WHERE, MNT_DETACH);
	kill(server, SIGKILL);
	return 0;
}
