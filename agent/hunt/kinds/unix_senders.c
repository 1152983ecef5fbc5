// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/unix.h"
#include "hunt/lib/waiters.h"

static int sender;

static void wait_for_it(int64_t i)
{
	(void)i;
	MUST(write(sender, "x", 1));
}

static void make(void)
{
	int size = 1;

	unix_server(SOCK_DGRAM, "name");
	sender = MUST(socket(AF_UNIX, SOCK_DGRAM, 0));
	setsockopt(sender, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	MUST(unix_name(connect, sender, "name"));
	while (send(sender, "x", 1, MSG_DONTWAIT) == 1)
		;
	waiters_make(NULL, wait_for_it);
}

KIND(unix_senders, "ipc", "process that waits for room in the queue of one unix socket",
     .shape = ON_ONE, .limit = "nproc", .needs = "CONFIG_UNIX", .make = make, WAITERS_KILLED);
