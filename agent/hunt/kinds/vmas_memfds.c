// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

static void add(int64_t i)
{
	int fd = MUST(memfd_create("memfd", 0));

	MUST(ftruncate(fd, PAGE));
	pages_add(i, READ_WRITE, MAP_SHARED, fd);
	close(fd);
}

KIND(vmas_memfds, "memory", "mapping of a closed memfd of its own", .shape = OF_ONE,
     .limit = "max_map_count", .exit = true, .add = add, .remove = pages_unmap);
