// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

static int open_one(int64_t i)
{
	int ends[2];

	(void)i;
	MUST(pipe(ends));
	MUST(write(ends[1], "x", 1));
	close(ends[1]);
	return ends[0];
}

KIND(pipes, "files", "pipe with a byte in it", .shape = OF_ONE, .limit = "nofile",
     .open = open_one);
