// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

static void add(int64_t i)
{
	make_closed_file(name_of(i));
}

static void remove_one(int64_t i)
{
	MUST(unlink(name_of(i)));
}

KIND(files_unlinked, "inodes", "file of one directory of a tmpfs", .shape = OF_ONE,
     .limit = "memory", .add = add, .remove = remove_one);
