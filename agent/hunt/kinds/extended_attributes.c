// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

#include <sys/xattr.h>

static const char *attribute(int64_t i)
{
	static char name[40];

	snprintf(name, sizeof(name), "trusted.%lld", (long long)i);
	return name;
}

static void prepare(void)
{
	make_closed_file("file");
}

static void add(int64_t i)
{
	MUST(setxattr("file", attribute(i), "x", 1, 0));
}

static void remove_one(int64_t i)
{
	MUST(removexattr("file", attribute(i)));
}

static void release(void)
{
	MUST(unlink("file"));
}

KIND(extended_attributes, "inodes", "extended attribute of one file", .shape = ON_ONE,
     .limit = "memory", .needs = "CONFIG_TMPFS_XATTR", .privileged = true, .call = "unlink()",
     .prepare = prepare, .add = add, .remove = remove_one, .release = release);
