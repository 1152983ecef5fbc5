// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

/* The name below /proc/self/fd has a dentry, which goes with its process. */
static int open_one(int64_t i)
{
	int fd = MUST(open("/dev/null", O_RDONLY));
	char path[40];
	struct stat unused;

	(void)i;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	MUST(lstat(path, &unused));
	return fd;
}

KIND(proc_descriptors, "inodes", "descriptor that was looked up in /proc/self/fd", .shape = OF_ONE,
     .limit = "nofile", .open = open_one);
