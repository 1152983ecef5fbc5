// SPDX-License-Identifier: GPL-2.0
/*
 * Objects that live as long as a descriptor. The process makes it in the cgroup, in a table of
 * descriptors that it shares with the agent, which so keeps it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "holders.h"
#include "lib/cgroup.h"

#define INOTIFY "/proc/sys/fs/inotify/"
/* A group, its watch and its file take 600 bytes or more. */
#define GROUP 512
#define SLAB_SLACK 65536
/* One page of a socket's memory is charged for it. */
#define DATAGRAM 1000

/* The table grows here, so that no part of it is charged to a cgroup of the objects. */
static int grow_table(struct trial *t, int64_t count)
{
	int last = dup2(STDERR_FILENO, count + 256);

	if (last < 0)
		return wl_fail(t, "cannot have %lld descriptors: %m", (long long)count + 256);
	close(last);
	return 0;
}

static int close_descriptor(int64_t number, int64_t kept)
{
	(void)number;
	return kept && close(kept) ? -errno : 0;
}

/* -- inotify -- */

static char instances[32];

static int prepare_inotify(struct trial *t, int64_t count)
{
	int error = read_file(INOTIFY "max_user_instances", instances, sizeof(instances));

	if (error > 0)
		error = write_file(INOTIFY "max_user_instances", "%lld", (long long)count + 256);
	if (error < 0)
		return wl_fail(t,
			       "cannot raise the limit on inotify groups: %s; the kernel needs "
			       "INOTIFY_USER",
			       strerror(-error));
	return grow_table(t, count);
}

static void make_group(int64_t number, struct made *made)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	(void)number;
	made_check(made, "making an inotify group", fd < 0 ? -errno : 0);
	made->descriptor = fd;
	if (inotify_add_watch(fd, HELD_FILES, IN_DELETE_SELF) < 0)
		made_check(made, "adding a watch", -errno);
}

static int64_t count_groups(const int64_t *kept, int64_t count, bool outside)
{
	char path[64], text[1024];
	int64_t found = 0;

	(void)outside;
	for (int64_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%lld", (long long)kept[i]);
		found += read_file(path, text, sizeof(text)) > 0 && strstr(text, "inotify wd:");
	}
	return found;
}

static void tidy_inotify(void)
{
	if (instances[0])
		write_file(INOTIFY "max_user_instances", "%s", instances);
	instances[0] = '\0';
}

const struct holder holder_inotify = {
	.name = "inotify",
	.shares_descriptors = true,
	.charge = {"memory.stat", "slab", .bytes = GROUP, .slack_bytes = SLAB_SLACK},
	.prepare = prepare_inotify,
	.make = make_group,
	.count = count_groups,
	.release = close_descriptor,
	.tidy = tidy_inotify,
};

/* -- a socket -- */

static int set_loopback(bool up)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = "lo"};
	int error = 0;

	if (fd < 0)
		return -errno;
	request.ifr_flags = up ? IFF_UP : 0;
	if (ioctl(fd, SIOCSIFFLAGS, &request))
		error = -errno;
	close(fd);
	return error;
}

static int prepare_sockets(struct trial *t, int64_t count)
{
	int error = set_loopback(true);

	if (error)
		return wl_fail(t, "cannot use the loopback device: %s; the kernel needs INET",
			       strerror(-error));
	return grow_table(t, count);
}

/* Binds the socket to a free port of the loopback device, and connects it with itself. */
static int connect_with_itself(int fd)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    getsockname(fd, (struct sockaddr *)&address, &size) ||
	    connect(fd, (struct sockaddr *)&address, size))
		return -errno;
	return 0;
}

static void make_socket(int64_t number, struct made *made)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char datagram[DATAGRAM] = {0};

	(void)number;
	made_check(made, "making a socket", fd < 0 ? -errno : 0);
	made->descriptor = fd;
	made_check(made, "connecting a socket", connect_with_itself(fd));
	if (send(fd, datagram, sizeof(datagram), 0) < 0)
		made_check(made, "sending a datagram", -errno);
}

/* How many have their datagram. */
static int64_t count_sockets(const int64_t *kept, int64_t count, bool outside)
{
	int64_t found = 0;
	int bytes;

	(void)outside;
	for (int64_t i = 0; i < count; i++)
		found += !ioctl(kept[i], FIONREAD, &bytes) && bytes == DATAGRAM;
	return found;
}

static void tidy_sockets(void)
{
	set_loopback(false);
}

/*
 * The socket refers to the cgroup itself. So its page is uncharged from the removed cgroup, which
 * puts the cgroup into the CPU's stock (refill_stock() in mm/memcontrol.c).
 */
const struct holder holder_socket = {
	.name = "socket",
	.shares_descriptors = true,
	.stocked = true,
	.charge = {"memory.stat", "sock", .pages = 1},
	.prepare = prepare_sockets,
	.make = make_socket,
	.count = count_sockets,
	.release = close_descriptor,
	.tidy = tidy_sockets,
};
