// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

static void prepare(void)
{
	MUST(mkfifo("fifo", 0600));
}

static int open_one(int64_t i)
{
	(void)i;
	return MUST(open("fifo", O_RDWR));
}

KIND(fifo_openers, "files", "open file of one fifo", .shape = ON_ONE, .limit = "nofile",
     .prepare = prepare, .open = open_one);
