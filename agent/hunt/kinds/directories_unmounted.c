// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/tmpfs.h"

static void add(int64_t i)
{
	(void)i;
	MUST(mkdir("d", 0700));
	MUST(chdir("d"));
}

KIND(directories_unmounted, "inodes",
     "directory in the directory before it, of a tmpfs that is unmounted", TMPFS_UNMOUNTED,
     .add = add);
