// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

static int open_one(int64_t i)
{
	int fd = make_file(name_of(i));

	MUST(unlink(name_of(i)));
	return fd;
}

KIND(files_open_unlinked, "inodes", "open file that is unlinked", .shape = OF_ONE,
     .limit = "nofile", .open = open_one);
