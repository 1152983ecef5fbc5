// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/mounts.h"

static void add(int64_t i)
{
	(void)i;
	mounts_bind("m/from", mounts_folder(0));
}

KIND(mounts_stacked, "mounts", "bind mount on top of the others at one place", .shape = ON_ONE,
     .limit = "mount_max", .call = "umount2(tree, MNT_DETACH)", .exit = true,
     .prepare = mounts_prepare, .add = add, .release = mounts_release);
