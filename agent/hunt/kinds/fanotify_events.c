// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

#include <sys/fanotify.h>

static int group;

static void prepare(void)
{
	put_file("/proc/sys/fs/fanotify/max_queued_events", "1000000");
	group = MUST(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME, O_RDONLY));
	MUST(fanotify_mark(group, FAN_MARK_ADD, FAN_CREATE, AT_FDCWD, "."));
}

static void add(int64_t i)
{
	MUST(mknod(name_of(i), S_IFREG | 0600, 0));
}

static void release(void)
{
	MUST(close(group));
}

KIND(fanotify_events, "notification", "event in the queue of one fanotify group", .shape = ON_ONE,
     .limit = "fanotify_events", .needs = "CONFIG_FANOTIFY", .exit = true, .call = "close()",
     .prepare = prepare, .add = add, .release = release);
