// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/mounts.h"

static void add(int64_t i)
{
	char from[32];

	snprintf(from, sizeof(from), "%s", i ? mounts_folder(i - 1) : "m/peer");
	mounts_bind(from, mounts_folder(i));
	mounts_flags(mounts_folder(i), MS_SLAVE);
	mounts_flags(mounts_folder(i), MS_SHARED);
}

KIND(mounts_slave_chain, "mounts", "bind mount that is a slave of the one before", .shape = OF_ONE,
     .limit = "mount_max", .call = "umount2(tree, MNT_DETACH)", .exit = true,
     .prepare = mounts_shared_peer, .add = add, .remove = mounts_remove, .release = mounts_release);
