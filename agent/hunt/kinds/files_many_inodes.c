// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

static int open_one(int64_t i)
{
	return make_file(name_of(i));
}

KIND(files_many_inodes, "files", "open file of an inode of its own", .shape = OF_ONE,
     .limit = "nofile", .open = open_one);
