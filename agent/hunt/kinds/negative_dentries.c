// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

/* A tmpfs does not keep names that were not found; sysfs does. */
static void add(int64_t i)
{
	access(name_of(i), F_OK);
}

static void prepare(void)
{
	MUST(put_file("/proc/sys/vm/drop_caches", "2") ? -1 : 0);
	MUST(chdir("/sys/kernel"));
}

static void release(void)
{
	MUST(put_file("/proc/sys/vm/drop_caches", "2") ? -1 : 0);
}

KIND(negative_dentries, "inodes", "name that was looked up in one directory and not found",
     .shape = ON_ONE, .limit = "memory", .privileged = true, .call = "writing to drop_caches",
     .prepare = prepare, .add = add, .release = release);
