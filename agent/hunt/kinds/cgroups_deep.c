// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/cgroups.h"

static void prepare(void)
{
	cgroups_make("");
	MUST(chdir(cgroups_base));
}

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
	MUST(chdir("/"));
}

KIND(cgroups_deep, "cgroups", "cgroup below the one before, removed from the innermost on",
     .shape = OF_ONE, .limit = "cgroups", .privileged = true, .call = "rmdir() of all",
     .prepare = prepare, .add = add, .release = release, .left = cgroups_left);
