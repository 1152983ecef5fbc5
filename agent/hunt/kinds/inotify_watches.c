// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

#include <sys/inotify.h>

static int instance;
static int32_t *watches;

static void prepare(void)
{
	instance = MUST(inotify_init1(0));
	watches = array(sizeof(*watches));
}

static void add(int64_t i)
{
	make_closed_file(name_of(i));
	watches[i] = MUST(inotify_add_watch(instance, name_of(i), IN_MODIFY));
}

static void remove_one(int64_t i)
{
	MUST(inotify_rm_watch(instance, watches[i]));
}

static void release(void)
{
	MUST(close(instance));
}

KIND(inotify_watches, "notification", "watch of a file of its own, all of one inotify instance",
     .shape = OF_ONE, .limit = "inotify_watches", .needs = "CONFIG_INOTIFY_USER", .exit = true,
     .call = "close()", .prepare = prepare, .add = add, .remove = remove_one, .release = release);
