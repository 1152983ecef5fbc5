// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

#include <sys/inotify.h>

static void prepare(void)
{
	make_closed_file("file");
}

static int open_one(int64_t i)
{
	int fd = MUST(inotify_init1(0));

	(void)i;
	MUST(inotify_add_watch(fd, "file", IN_MODIFY));
	return fd;
}

static void release(void)
{
	MUST(unlink("file"));
}

KIND(inotify_one_file, "notification", "inotify instance that watches one file", .shape = ON_ONE,
     .limit = "inotify_instances", .needs = "CONFIG_INOTIFY_USER", .call = "unlink(the file)",
     .prepare = prepare, .open = open_one, .release = release);
