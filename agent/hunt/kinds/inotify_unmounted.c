// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/tmpfs.h"

#include <sys/inotify.h>

static int instance;

static void prepare(void)
{
	tmpfs_prepare();
	instance = MUST(inotify_init1(0));
}

static void add(int64_t i)
{
	make_closed_file(name_of(i));
	MUST(inotify_add_watch(instance, name_of(i), IN_MODIFY));
}

KIND(inotify_unmounted, "notification", "watched file of a tmpfs that is unmounted",
     .shape = OF_ONE, .limit = "inotify_watches", .needs = "CONFIG_INOTIFY_USER", .exit = true,
     .call = "umount()", .prepare = prepare, .add = add, .release = tmpfs_unmount);
