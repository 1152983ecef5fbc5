// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/pages.h"

static int fd;

static void prepare(void)
{
	fd = make_file("file");
	MUST(ftruncate(fd, PAGE));
}

static void add(int64_t i)
{
	pages_add(i, READ_WRITE, MAP_SHARED, fd);
}

KIND(vmas_one_file, "memory", "shared mapping of one file", .shape = ON_ONE,
     .limit = "max_map_count", .exit = true, .prepare = prepare, .add = add, .remove = pages_unmap);
