// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"

static int open_one(int64_t i)
{
	(void)i;
	return make_file("file");
}

KIND(files_one_inode, "files", "open file of one inode", .shape = ON_ONE, .limit = "nofile",
     .open = open_one);
