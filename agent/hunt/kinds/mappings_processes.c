// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/forks.h"
#include "hunt/lib/names.h"
#include "hunt/lib/pages.h"

static int fd;

static void map(int64_t i)
{
	(void)i;
	*(volatile char *)pages_map(PAGE, READ_WRITE, MAP_SHARED, fd) = 1;
}

static void make(void)
{
	fd = make_file("file");
	MUST(ftruncate(fd, PAGE));
	forks_make(map);
}

KIND(mappings_processes, "memory", "process that maps one file", .shape = ON_ONE, .limit = "nproc",
     .make = make, FORKS_KILLED);
