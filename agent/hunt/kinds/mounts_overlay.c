// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/mounts.h"

static void prepare(void)
{
	mounts_prepare();
	MUST(mkdir("m/other", 0700));
}

static void add(int64_t i)
{
	MUST(mount("m", mounts_folder(i), "overlay", MS_RDONLY, "lowerdir=m/from:m/other"));
}

KIND(mounts_overlay, "mounts", "overlay mount of one pair of folders", .modules = "overlay",
     .shape = OF_ONE, .limit = "mount_max", .needs = "CONFIG_OVERLAY_FS",
     .call = "umount2(tree, MNT_DETACH)", .exit = true, .prepare = prepare, .add = add,
     .remove = mounts_remove, .release = mounts_release);
