// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/waiters.h"

#include <sys/fanotify.h>

static int group;

static void wait_for_it(int64_t i)
{
	(void)i;
	close(group);
	open("file", O_RDONLY);
}

static void make(void)
{
	make_closed_file("file");
	group = MUST(fanotify_init(FAN_CLASS_CONTENT | FAN_UNLIMITED_QUEUE, O_RDONLY));
	MUST(fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, "file"));
	waiters_make(NULL, wait_for_it);
}

KIND(fanotify_permission, "notification",
     "process whose open() waits for the permission of one fanotify group", .shape = ON_ONE,
     .limit = "nproc", .needs = "CONFIG_FANOTIFY_ACCESS_PERMISSIONS", .privileged = true,
     .make = make, WAITERS_KILLED);
