// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/mounts.h"

static void prepare(void)
{
	mounts_prepare();
	mounts_flags("m", MS_SHARED);
	if (!child(0, true)) {
		MUST(unshare(CLONE_NEWNS));
		wait_to_be_killed();
	}
	/* Its namespace is a copy of this one from now on. */
	usleep(20000);
}

KIND(mounts_peer_namespace, "mounts", "bind mount in a tree that another namespace shares",
     .shape = OF_ONE, .limit = "mount_max", .call = "umount2(tree, MNT_DETACH)", .exit = true,
     .prepare = prepare, .add = mounts_add, .remove = mounts_remove, .release = mounts_release);
