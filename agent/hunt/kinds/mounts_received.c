// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/mounts.h"

/* A descriptor keeps each namespace; the last one makes the mount that all others receive. */
static void add(int64_t i)
{
	MUST(unshare(CLONE_NEWNS));
	MUST(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
	if (i == nr_objects - 1)
		mounts_bind("m/from", mounts_folder(0));
}

static void prepare(void)
{
	mounts_prepare();
	mounts_flags("m", MS_SHARED);
}

static void release(void)
{
	MUST(umount2("m/0", MNT_DETACH));
}

KIND(mounts_received, "mounts", "mount namespace that receives one mount by propagation",
     .shape = ON_ONE, .limit = "mount_max", .call = "umount2(mount, MNT_DETACH)", .exit = true,
     .prepare = prepare, .add = add, .release = release);
