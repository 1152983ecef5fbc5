// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/mounts.h"

static void remove_one(int64_t i)
{
	MUST(umount2(mounts_folder(i), MNT_DETACH));
}

KIND(mounts_lazy, "mounts", "bind mount that is unmounted lazily", .shape = OF_ONE,
     .limit = "mount_max", .prepare = mounts_prepare, .add = mounts_add, .remove = remove_one);
