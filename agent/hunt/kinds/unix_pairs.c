// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/unix.h"

static int open_one(int64_t i)
{
	int ends[2];

	(void)i;
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	MUST(write(ends[1], "x", 1));
	close(ends[1]);
	return ends[0];
}

KIND(unix_pairs, "ipc", "unix socket with a byte that its closed peer sent", .shape = OF_ONE,
     .limit = "nofile", .needs = "CONFIG_UNIX", .open = open_one);
