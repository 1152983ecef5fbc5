// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/waiters.h"

static int fd;

static void lock(int64_t i)
{
	struct flock one = {.l_type = F_WRLCK, .l_start = 2 * i, .l_len = 1};

	MUST(fcntl(fd, F_SETLK, &one));
}

static void make(void)
{
	fd = make_file("file");
	waiters_make(lock, NULL);
}

KIND(posix_locks_processes, "files", "process with a lock of one byte (POSIX) of one file",
     .shape = ON_ONE, .limit = "nproc", .needs = "CONFIG_FILE_LOCKING", .make = make,
     WAITERS_KILLED);
