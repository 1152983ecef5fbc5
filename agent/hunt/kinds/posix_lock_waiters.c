// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/waiters.h"

static int fd;

static void wait_for_it(int64_t i)
{
	struct flock lock = {.l_type = F_WRLCK, .l_len = 1};

	(void)i;
	fcntl(fd, F_SETLKW, &lock);
}

static void make(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_len = 1};

	fd = make_file("file");
	MUST(fcntl(fd, F_SETLK, &lock));
	waiters_make(NULL, wait_for_it);
}

KIND(posix_lock_waiters, "files", "process that waits for a POSIX lock of one byte",
     .shape = ON_ONE, .limit = "nproc", .needs = "CONFIG_FILE_LOCKING", .make = make,
     WAITERS_KILLED);
