// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

static void prepare(void)
{
	make_closed_file("file");
}

static int open_one(int64_t i)
{
	int fd = MUST(open("file", O_RDONLY));

	(void)i;
	MUST(fcntl(fd, F_SETLEASE, F_RDLCK));
	return fd;
}

KIND(leases, "files", "open file of one inode with a read lease", .shape = ON_ONE,
     .limit = "nofile", .needs = "CONFIG_FILE_LOCKING", .prepare = prepare, .open = open_one);
