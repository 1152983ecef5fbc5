// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

static void add(int64_t i)
{
	MUST(symlink("/a/target/that/is/not/stored/within/the/inode/itself/of/a/tmpfs/as/it/is/"
		     "long/enough",
		     name_of(i)));
}

static void remove_one(int64_t i)
{
	MUST(unlink(name_of(i)));
}

KIND(symbolic_links, "inodes", "symbolic link", .shape = OF_ONE, .limit = "memory", .add = add,
     .remove = remove_one);
