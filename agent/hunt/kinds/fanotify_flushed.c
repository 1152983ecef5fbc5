// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

#include <sys/fanotify.h>

static int group;

static void prepare(void)
{
	group = MUST(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY));
}

static void add(int64_t i)
{
	make_closed_file(name_of(i));
	MUST(fanotify_mark(group, FAN_MARK_ADD, FAN_MODIFY, AT_FDCWD, name_of(i)));
}

static void remove_one(int64_t i)
{
	MUST(unlink(name_of(i)));
}

static void release(void)
{
	MUST(fanotify_mark(group, FAN_MARK_FLUSH, 0, AT_FDCWD, NULL));
}

KIND(fanotify_flushed, "notification",
     "file that is marked by one fanotify group; unlinked, or the marks flushed", .shape = OF_ONE,
     .limit = "fanotify_marks", .needs = "CONFIG_FANOTIFY", .call = "fanotify_mark(FAN_MARK_FLUSH)",
     .prepare = prepare, .add = add, .remove = remove_one, .release = release);
