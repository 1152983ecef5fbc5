// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

static int ends[2];

static void prepare(void)
{
	MUST(pipe(ends));
}

static int open_one(int64_t i)
{
	int fd = open_again(ends[0], O_RDONLY);

	(void)i;
	MUST(fcntl(fd, F_SETFL, O_ASYNC));
	return fd;
}

KIND(fasync_pipe, "files", "open file of one pipe with O_ASYNC", .shape = ON_ONE, .limit = "nofile",
     .prepare = prepare, .open = open_one);
