// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

/* memfd_secret() of Linux 5.14, which older headers do not have. */
#define NR_MEMFD_SECRET 447

static int open_one(int64_t i)
{
	int fd = MUST(syscall(NR_MEMFD_SECRET, 0));
	char *at;

	(void)i;
	MUST(ftruncate(fd, PAGE));
	at = pages_map(PAGE, READ_WRITE, MAP_SHARED, fd);
	*at = 1;
	MUST(munmap(at, PAGE));
	return fd;
}

KIND(secret_memory, "memory", "memfd_secret() with a page", .shape = OF_ONE, .limit = "nofile",
     .needs = "CONFIG_SECRETMEM", .open = open_one);
