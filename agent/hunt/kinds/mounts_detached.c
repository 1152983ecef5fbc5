// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/mounts.h"

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif

static int open_one(int64_t i)
{
	(void)i;
	return MUST(syscall(SYS_open_tree, AT_FDCWD, "m/from", OPEN_TREE_CLONE | O_CLOEXEC));
}

KIND(mounts_detached, "mounts", "detached bind mount that a descriptor keeps", .shape = OF_ONE,
     .limit = "mount_max", .prepare = mounts_prepare, .open = open_one);
