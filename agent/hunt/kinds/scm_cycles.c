// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/unix.h"

/* Its own end is in its queue, so that only the garbage collector finds it after close(). */
static int open_one(int64_t i)
{
	int ends[2];

	(void)i;
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	unix_send_fd(ends[0], ends[1]);
	close(ends[1]);
	return ends[0];
}

KIND(scm_cycles, "ipc", "pair of unix sockets with one of them in flight in itself",
     .shape = OF_ONE, .limit = "nofile", .needs = "CONFIG_UNIX", .open = open_one);
