// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/mounts.h"

static void add(int64_t i)
{
	MUST(mount("m", mounts_folder(i), "tmpfs", 0, NULL));
}

KIND(mounts_tmpfs, "mounts", "tmpfs mount beside the others in one tree", .shape = OF_ONE,
     .limit = "mount_max", .call = "umount2(tree, MNT_DETACH)", .exit = true,
     .prepare = mounts_prepare, .add = add, .remove = mounts_remove, .release = mounts_release);
