// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

/* Another process locks; what the owner releases are open files without a lock. */
static void prepare(void)
{
	int fd = make_file("file");
	int64_t i;

	ready_make();
	if (child(0, true))
		return ready_wait();
	for (i = 0; i < nr_objects; i++) {
		struct flock lock = {.l_type = F_WRLCK, .l_start = 2 * i, .l_len = 1};

		MUST(fcntl(fd, F_SETLK, &lock));
	}
	ready_say();
	wait_to_be_killed();
}

static int open_one(int64_t i)
{
	(void)i;
	return make_file("file");
}

KIND(posix_locks_other, "files",
     "open file of one inode, on which another process has a POSIX lock for each of them",
     .shape = ON_ONE, .limit = "nofile", .needs = "CONFIG_FILE_LOCKING", .prepare = prepare,
     .open = open_one);
