// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/mounts.h"

static int top;

static void prepare(void)
{
	mounts_prepare();
	top = MUST(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC));
	MUST(chdir("m"));
}

static void add(int64_t i)
{
	(void)i;
	MUST(mkdir("d", 0700));
	MUST(mount("m", "d", "tmpfs", 0, NULL));
	MUST(chdir("d"));
}

static void release(void)
{
	MUST(fchdir(top));
	mounts_release();
}

KIND(mounts_deep, "mounts", "tmpfs mount below the one before", .shape = OF_ONE,
     .limit = "mount_max", .call = "umount2(tree, MNT_DETACH)", .exit = true, .prepare = prepare,
     .add = add, .release = release);
