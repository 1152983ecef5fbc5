// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/unix.h"

/* The collector is a work item: in the pause it looks once at all sockets in flight. */
#define PAUSE_US 4000

static int *fds, ends[2];

/*
 * One socket is in flight in itself and has a descriptor, too: a cycle that is no garbage. Without
 * a cycle the collector looks at no socket, with one it looks at all.
 */
static void prepare(void)
{
	int size = 1 << 30, cycle[2];

	fds = array(sizeof(*fds));
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, cycle));
	unix_send_fd(cycle[0], cycle[1]);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
}

static void add(int64_t i)
{
	fds[i] = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
}

static void remove_one(int64_t i)
{
	MUST(close(fds[i]));
	usleep(PAUSE_US);
}

static void release(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++)
		remove_one(i);
}

static void stay(int64_t i)
{
	int fd = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));

	(void)i;
	unix_send_fd(ends[0], fd);
	close(fd);
}

KIND(unix_beside_cycle, "ipc", "unix socket beside others in flight, one of them in itself",
     .shape = OF_ONE, .limit = "nofile", .needs = "CONFIG_UNIX",
     .call = "close() of all, with pauses", .prepare = prepare, .add = add, .remove = remove_one,
     .release = release, .resident = "unix socket in flight, without a cycle of its own",
     .residents_limit = "wmem", .most_residents = 8192, .stay = stay);
