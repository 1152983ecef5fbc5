// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/file.h>

static int open_one(int64_t i)
{
	int fd = MUST(open("file", O_RDWR | O_CREAT, 0600));

	(void)i;
	MUST(flock(fd, LOCK_SH));
	return fd;
}

KIND(flocks, "files", "open file of one inode with a shared flock", .shape = ON_ONE,
     .limit = "nofile", .open = open_one);
