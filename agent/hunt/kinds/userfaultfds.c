// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"
#include "hunt/lib/uffd.h"

static int open_one(int64_t i)
{
	int fd = uffd_make();

	(void)i;
	uffd_register(fd, pages_reserve(PAGE), PAGE);
	return fd;
}

KIND(userfaultfds, "memory", "userfaultfd with a mapping", .shape = OF_ONE, .limit = "nofile",
     .needs = "CONFIG_USERFAULTFD", .open = open_one);
