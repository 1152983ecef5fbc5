// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

static int fd;

static void prepare(void)
{
	fd = make_file("file");
}

static void set(int64_t i, int type)
{
	struct flock lock = {.l_type = type, .l_start = 2 * i, .l_len = 1};

	MUST(fcntl(fd, F_SETLK, &lock));
}

static void add(int64_t i)
{
	set(i, F_WRLCK);
}

static void remove_one(int64_t i)
{
	set(i, F_UNLCK);
}

static void release(void)
{
	MUST(close(fd));
}

KIND(posix_locks, "files", "lock of one byte (POSIX) of one file, all of one process",
     .shape = ON_ONE, .limit = "memory", .needs = "CONFIG_FILE_LOCKING", .exit = true,
     .call = "close()", .prepare = prepare, .add = add, .remove = remove_one, .release = release);
