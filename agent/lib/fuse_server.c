// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* ppoll() */
#include "fuse_server.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "workload.h"

#define FILE_NODE 2
#define MAX_HELD 16384
/* The kernel requires room for a write of a page, whatever is requested. */
#define REQUEST_BYTES (FUSE_MIN_READ_BUFFER + 4096)

struct server {
	int fd, key; /* key: a pidfd; -1: not opened yet; -2: the process is gone */
	int64_t delay_ns; /* of each answer to a flush, if they do not wait for a process */
	struct held {
		uint64_t unique;
		int64_t due_ns;
	} held[MAX_HELD];
	int first, nr_held;
};

static void reply(const struct server *s, uint64_t unique, int error, const void *data, size_t len)
{
	struct fuse_out_header head = {.len = sizeof(head) + len, .error = error, .unique = unique};
	struct iovec parts[] = {{&head, sizeof(head)}, {(void *)data, len}};

	/* If the requesting task is gone, the kernel refuses the answer; no task waits for it. */
	if (writev(s->fd, parts, 2) < 0)
		return;
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){
		.ino = node,
		.mode = node == FILE_NODE ? S_IFREG | 0644 : S_IFDIR | 0755,
		.nlink = 1,
		.blksize = 4096,
	};
}

/* Those that were due at that time. */
static void release_held(struct server *s, int64_t now)
{
	while (s->first < s->nr_held && s->held[s->first].due_ns <= now)
		reply(s, s->held[s->first++].unique, 0, NULL, 0);
	if (s->first == s->nr_held)
		s->first = s->nr_held = 0;
}

static void flush(struct server *s, uint64_t unique, const _Atomic pid_t *key)
{
	if (s->key == -1 && key) {
		s->key = syscall(SYS_pidfd_open, *key, 0);
		if (s->key < 0)
			s->key = -2;
	}
	if (s->nr_held < MAX_HELD)
		s->held[s->nr_held++] =
			(struct held){unique, s->delay_ns ? now_ns() + s->delay_ns : 0};
	if (s->key == -2)
		release_held(s, 0);
}

static void answer(struct server *s, const struct fuse_in_header *in, const _Atomic pid_t *key)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_write = 4096};
	struct fuse_entry_out entry = {.nodeid = FILE_NODE, .attr = attributes(FILE_NODE)};
	struct fuse_attr_out attr = {.attr = attributes(in->nodeid)};
	struct fuse_open_out opened = {.fh = 1};

	switch (in->opcode) {
	case FUSE_INIT:
		return reply(s, in->unique, 0, &init, sizeof(init));
	case FUSE_LOOKUP:
		return reply(s, in->unique, 0, &entry, sizeof(entry));
	case FUSE_GETATTR:
		return reply(s, in->unique, 0, &attr, sizeof(attr));
	case FUSE_OPEN:
		return reply(s, in->unique, 0, &opened, sizeof(opened));
	case FUSE_FLUSH:
		return flush(s, in->unique, key);
	case FUSE_RELEASE:
		return reply(s, in->unique, 0, NULL, 0);
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		return reply(s, in->unique, -ENOSYS, NULL, 0);
	}
}

/* How long to wait for a request. NULL: for ever. */
static const struct timespec *until_due(const struct server *s)
{
	static struct timespec left;
	int64_t ns;

	if (!s->delay_ns || s->first == s->nr_held)
		return NULL;
	ns = s->held[s->first].due_ns - now_ns();
	ns = ns < 0 ? 0 : ns;
	left = (struct timespec){ns / 1000000000, ns % 1000000000};
	return &left;
}

__attribute__((noreturn)) static void serve(int fd, const _Atomic pid_t *key, int64_t delay_ns)
{
	static char request[REQUEST_BYTES] __attribute__((aligned(8)));
	static struct server s;

	s.fd = fd;
	s.key = -1;
	s.delay_ns = delay_ns;
	for (;;) {
		struct pollfd events[] = {{.fd = fd, .events = POLLIN},
					  {.fd = s.key, .events = POLLIN}};

		if (ppoll(events, 2, until_due(&s), NULL) < 0 && errno != EINTR)
			_exit(1);
		if (events[1].revents) {
			close(s.key);
			s.key = -2;
			release_held(&s, 0);
		}
		if (delay_ns)
			release_held(&s, now_ns());
		if (!events[0].revents)
			continue;
		if (read(fd, request, sizeof(request)) >= (ssize_t)sizeof(struct fuse_in_header))
			answer(&s, (struct fuse_in_header *)request, key);
		else if (errno == ENODEV)
			_exit(0); /* unmounted */
	}
}

pid_t fuse_start(const _Atomic pid_t *key, int64_t delay_ns)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC), error;
	char options[64];
	pid_t pid;

	if (fd < 0)
		return -errno;
	mkdir(FUSE_FOLDER, 0755);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	pid = mount("fuse", FUSE_FOLDER, "fuse", 0, options) ? -1 : fork();
	error = errno;
	if (!pid)
		serve(fd, key, delay_ns);
	close(fd);
	return pid < 0 ? -error : pid;
}

void fuse_stop(pid_t server)
{
	kill(server, SIGKILL);
	umount2(FUSE_FOLDER, MNT_DETACH);
}
