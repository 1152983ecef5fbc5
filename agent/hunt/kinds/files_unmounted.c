// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/tmpfs.h"

static void add(int64_t i)
{
	make_closed_file(name_of(i));
}

KIND(files_unmounted, "inodes", "file of one directory of a tmpfs that is unmounted",
     TMPFS_UNMOUNTED, .add = add);
