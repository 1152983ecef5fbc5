// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

/* Above all others, so that they can be closed at once. */
#define LOWEST 64

static int fd;

static void prepare(void)
{
	fd = make_file("file");
}

static int open_one(int64_t i)
{
	(void)i;
	return MUST(fcntl(fd, F_DUPFD, LOWEST));
}

static void release(void)
{
	MUST(close_range(LOWEST, ~0U, 0));
}

KIND(descriptors_one_file, "files", "descriptor of one open file", .shape = ON_ONE,
     .limit = "nofile", .call = "close_range()", .prepare = prepare, .open = open_one,
     .release = release);
