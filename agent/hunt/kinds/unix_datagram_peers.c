// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/unix.h"

static int server;

static void prepare(void)
{
	server = unix_server(SOCK_DGRAM, "name");
}

static int open_one(int64_t i)
{
	int fd = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));

	(void)i;
	MUST(unix_name(connect, fd, "name"));
	return fd;
}

static void release(void)
{
	MUST(close(server));
}

KIND(unix_datagram_peers, "ipc", "datagram socket that is connected with one unix socket",
     .shape = ON_ONE, .limit = "nofile", .needs = "CONFIG_UNIX", .call = "close(receiver)",
     .prepare = prepare, .open = open_one, .release = release);
