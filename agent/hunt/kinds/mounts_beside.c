// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/mounts.h"

KIND(mounts_beside, "mounts", "bind mount beside the others in one tree", .shape = OF_ONE,
     .limit = "mount_max", .call = "umount2(tree, MNT_DETACH)", .exit = true,
     .prepare = mounts_prepare, .add = mounts_add, .remove = mounts_remove,
     .release = mounts_release);
