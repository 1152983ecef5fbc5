// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

static void add(int64_t i)
{
	(void)i;
	MUST(mkdir("d", 0700));
	MUST(chdir("d"));
}

static void release(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++) {
		MUST(chdir(".."));
		MUST(rmdir("d"));
	}
}

KIND(directories_deep, "inodes", "directory in the directory before it", .shape = OF_ONE,
     .limit = "memory", .call = "rmdir() of each, the innermost first", .add = add,
     .release = release);
