// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

static void prepare(void)
{
	MUST(mkdir("folder", 0700));
}

static int open_one(int64_t i)
{
	int fd = MUST(open("folder", O_RDONLY | O_DIRECTORY));

	(void)i;
	MUST(fcntl(fd, F_NOTIFY, DN_CREATE | DN_MULTISHOT));
	return fd;
}

KIND(dnotify, "files", "open file of one directory with F_NOTIFY", .shape = ON_ONE,
     .limit = "nofile", .needs = "CONFIG_DNOTIFY", .prepare = prepare, .open = open_one);
