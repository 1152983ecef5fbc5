// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

static int open_one(int64_t i)
{
	int fd = MUST(memfd_create("memfd", 0));

	(void)i;
	MUST(write(fd, "x", 1));
	return fd;
}

KIND(memfds, "files", "memfd with a page", .shape = OF_ONE, .limit = "nofile", .open = open_one);
