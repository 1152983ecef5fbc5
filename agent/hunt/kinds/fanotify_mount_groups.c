// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/fanotify.h>

static int open_one(int64_t i)
{
	int fd = MUST(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY));

	(void)i;
	MUST(fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_CLOSE_WRITE, AT_FDCWD, "."));
	return fd;
}

KIND(fanotify_mount_groups, "notification", "fanotify group that marks one mount", .shape = ON_ONE,
     .limit = "fanotify_groups", .needs = "CONFIG_FANOTIFY", .privileged = true, .open = open_one);
