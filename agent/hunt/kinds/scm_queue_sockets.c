// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/unix.h"

static int ends[2];

static void prepare(void)
{
	int size = 1 << 30;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
}

static void add(int64_t i)
{
	int fd = MUST(socket(AF_UNIX, SOCK_STREAM, 0));

	(void)i;
	unix_send_fd(ends[0], fd);
	close(fd);
}

static void release(void)
{
	close(ends[0]);
	close(ends[1]);
}

KIND(scm_queue_sockets, "ipc", "unix socket in flight in the queue of one unix socket",
     .shape = ON_ONE, .limit = "wmem", .needs = "CONFIG_UNIX", .exit = true,
     .call = "close(both ends)", .prepare = prepare, .add = add, .release = release);
