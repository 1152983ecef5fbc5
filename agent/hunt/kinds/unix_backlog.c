// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/unix.h"

static int server;

static void prepare(void)
{
	server = unix_server(SOCK_STREAM, "name");
	MUST(listen(server, nr_objects));
}

static int open_one(int64_t i)
{
	int fd = MUST(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));

	(void)i;
	MUST(unix_name(connect, fd, "name"));
	return fd;
}

static void release(void)
{
	MUST(close(server));
}

KIND(unix_backlog, "ipc", "connection with one unix socket that was not accepted", .shape = ON_ONE,
     .limit = "somaxconn", .needs = "CONFIG_UNIX", .call = "close(listener)", .prepare = prepare,
     .open = open_one, .release = release);
