// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/unix.h"

static int outer = -1;

/* Socket i is in flight in the queue of socket i + 1; only the last one has a descriptor. */
static void add(int64_t i)
{
	int ends[2];

	(void)i;
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	if (outer >= 0) {
		unix_send_fd(ends[0], outer);
		close(outer);
	}
	close(ends[0]);
	outer = ends[1];
}

static void release(void)
{
	MUST(close(outer));
}

KIND(scm_chain, "ipc", "unix socket in flight in the queue of the next one", .shape = OF_ONE,
     .limit = "nofile", .needs = "CONFIG_UNIX", .exit = true, .call = "close(the last)", .add = add,
     .release = release);
