// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/tmpfs.h"

#include <sys/inotify.h>

static int instance;

static void prepare(void)
{
	tmpfs_prepare();
	instance = MUST(inotify_init1(0));
	MUST(mkdir("inodes", 0700));
}

static void add(int64_t i)
{
	make_closed_file(name_of(i));
	MUST(inotify_add_watch(instance, name_of(i), IN_MODIFY));
}

static void stay(int64_t i)
{
	char name[32];

	snprintf(name, sizeof(name), "inodes/%lld", (long long)i);
	make_closed_file(name);
}

KIND(inotify_unmounted_inodes, "notification",
     "watched file of a tmpfs with other files that is unmounted", .shape = OF_ONE,
     .limit = "inotify_watches", .needs = "CONFIG_INOTIFY_USER", .exit = true, .call = "umount()",
     .prepare = prepare, .add = add, .release = tmpfs_unmount,
     .resident = "file of this tmpfs that is not watched", .residents_limit = "memory",
     .stay = stay);
