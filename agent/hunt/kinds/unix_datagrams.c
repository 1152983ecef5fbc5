// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/unix.h"

static int server;

static void prepare(void)
{
	server = unix_server(SOCK_DGRAM, "name");
}

static int open_one(int64_t i)
{
	int fd = MUST(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0));

	(void)i;
	MUST(unix_name(connect, fd, "name"));
	MUST(write(fd, "x", 1));
	return fd;
}

static void release(void)
{
	MUST(close(server));
}

KIND(unix_datagrams, "ipc", "socket with a datagram in the queue of one unix socket",
     .shape = ON_ONE, .limit = "max_dgram_qlen", .needs = "CONFIG_UNIX", .call = "close(receiver)",
     .prepare = prepare, .open = open_one, .release = release);
