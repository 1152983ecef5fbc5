// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/unix.h"

static int first = -1, before = -1;

/* Socket i is sent to socket i + 1, and the last one to the first: one cycle of all. */
static void add(int64_t i)
{
	int ends[2];

	(void)i;
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	if (before >= 0) {
		unix_send_fd(ends[0], before);
		close(before);
	} else {
		first = ends[0];
	}
	if (i == nr_objects - 1)
		unix_send_fd(first, ends[1]);
	if (ends[0] != first)
		close(ends[0]);
	before = ends[1];
}

static void release(void)
{
	close(before);
	MUST(close(first));
}

KIND(scm_ring, "ipc", "unix socket in flight in the queue of the next one, in one cycle",
     .shape = OF_ONE, .limit = "nofile", .needs = "CONFIG_UNIX", .exit = true,
     .call = "close(the last)", .add = add, .release = release);
