// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

/* Each has a new name, before which the old one was removed. */
static void add(int64_t i)
{
	char name[24];

	make_closed_file("file");
	snprintf(name, sizeof(name), "new%lld", (long long)i);
	MUST(rename("file", name));
}

static void remove_one(int64_t i)
{
	char name[24];

	snprintf(name, sizeof(name), "new%lld", (long long)i);
	MUST(rename(name, "file"));
}

KIND(names_exchanged, "inodes", "file that another file is renamed over", .shape = OF_ONE,
     .limit = "memory", .add = add, .remove = remove_one);
