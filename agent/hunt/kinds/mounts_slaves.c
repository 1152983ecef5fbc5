// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/mounts.h"

static void add(int64_t i)
{
	mounts_bind("m/peer", mounts_folder(i));
	mounts_flags(mounts_folder(i), MS_SLAVE);
}

KIND(mounts_slaves, "mounts", "bind mount that is a slave of one mount", .shape = ON_ONE,
     .limit = "mount_max", .call = "umount2(tree, MNT_DETACH)", .exit = true,
     .prepare = mounts_shared_peer, .add = add, .remove = mounts_remove, .release = mounts_release);
