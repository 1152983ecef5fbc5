// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

static void add(int64_t i)
{
	MUST(mkdir(name_of(i), 0700));
}

static void remove_one(int64_t i)
{
	MUST(rmdir(name_of(i)));
}

KIND(directories, "inodes", "directory in one directory", .shape = OF_ONE, .limit = "memory",
     .add = add, .remove = remove_one);
