// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

#include <sys/inotify.h>

static int instance;

static void prepare(void)
{
	instance = MUST(inotify_init1(0));
}

static void add(int64_t i)
{
	make_closed_file(name_of(i));
	MUST(inotify_add_watch(instance, name_of(i), IN_MODIFY));
}

static void remove_one(int64_t i)
{
	MUST(unlink(name_of(i)));
}

KIND(inotify_unlinked, "notification",
     "file that is watched and unlinked, all by one inotify instance", .shape = OF_ONE,
     .limit = "inotify_watches", .needs = "CONFIG_INOTIFY_USER", .prepare = prepare, .add = add,
     .remove = remove_one);
