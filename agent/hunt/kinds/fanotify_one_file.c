// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

#include <sys/fanotify.h>

static void prepare(void)
{
	make_closed_file("file");
}

static int open_one(int64_t i)
{
	int fd = MUST(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY));

	(void)i;
	MUST(fanotify_mark(fd, FAN_MARK_ADD, FAN_MODIFY, AT_FDCWD, "file"));
	return fd;
}

static void release(void)
{
	MUST(unlink("file"));
}

KIND(fanotify_one_file, "notification", "fanotify group that marks one file", .shape = ON_ONE,
     .limit = "fanotify_groups", .needs = "CONFIG_FANOTIFY", .call = "unlink(the file)",
     .prepare = prepare, .open = open_one, .release = release);
