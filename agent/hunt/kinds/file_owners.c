// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

static int open_one(int64_t i)
{
	int fd = make_file("file");

	(void)i;
	MUST(fcntl(fd, F_SETOWN, getpid()));
	return fd;
}

KIND(file_owners, "files", "open file whose signals go to one process", .shape = ON_ONE,
     .limit = "nofile", .open = open_one);
