// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

static void prepare(void)
{
	make_closed_file("file");
}

static void add(int64_t i)
{
	MUST(link("file", name_of(i)));
}

static void remove_one(int64_t i)
{
	MUST(unlink(name_of(i)));
}

KIND(hard_links, "inodes", "hard link of one file", .shape = ON_ONE, .limit = "memory",
     .prepare = prepare, .add = add, .remove = remove_one);
