// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ring.h"

static int open_one(int64_t i)
{
	struct io_uring_params params = {0};

	(void)i;
	return MUST(syscall(SYS_io_uring_setup, 1, &params));
}

KIND(io_urings, "io_uring", "io_uring", .shape = OF_ONE, .limit = "nofile",
     .needs = "CONFIG_IO_URING", .open = open_one);
