// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

static int open_one(int64_t i)
{
	struct flock lock = {.l_type = F_WRLCK, .l_start = 2 * i, .l_len = 1};
	int fd = make_file("file");

	MUST(fcntl(fd, F_OFD_SETLK, &lock));
	return fd;
}

KIND(ofd_locks, "files", "open file of one inode with a lock of one byte of its own (OFD)",
     .shape = ON_ONE, .limit = "nofile", .needs = "CONFIG_FILE_LOCKING", .open = open_one);
