// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

#include <sys/fanotify.h>

#define WHAT FAN_MODIFY

static int group;

static void prepare(void)
{
	group = MUST(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY));
}

static void add(int64_t i)
{
	make_closed_file(name_of(i));
	MUST(fanotify_mark(group, FAN_MARK_ADD, WHAT, AT_FDCWD, name_of(i)));
}

static void remove_one(int64_t i)
{
	MUST(fanotify_mark(group, FAN_MARK_REMOVE, WHAT, AT_FDCWD, name_of(i)));
}

static void release(void)
{
	MUST(close(group));
}

KIND(fanotify_marks, "notification", "mark of a file of its own, all of one fanotify group",
     .shape = OF_ONE, .limit = "fanotify_marks", .needs = "CONFIG_FANOTIFY", .exit = true,
     .call = "close()", .prepare = prepare, .add = add, .remove = remove_one, .release = release);
