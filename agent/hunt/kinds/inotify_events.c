// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

#include <sys/inotify.h>

static int instance;

static void prepare(void)
{
	put_file("/proc/sys/fs/inotify/max_queued_events", "1000000");
	instance = MUST(inotify_init1(0));
	MUST(inotify_add_watch(instance, ".", IN_CREATE));
}

static void add(int64_t i)
{
	MUST(mknod(name_of(i), S_IFREG | 0600, 0));
}

static void release(void)
{
	MUST(close(instance));
}

KIND(inotify_events, "notification", "event in the queue of one inotify instance", .shape = ON_ONE,
     .limit = "inotify_events", .needs = "CONFIG_INOTIFY_USER", .exit = true, .call = "close()",
     .prepare = prepare, .add = add, .release = release);
