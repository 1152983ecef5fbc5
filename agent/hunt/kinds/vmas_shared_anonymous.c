// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

static void add(int64_t i)
{
	pages_add(i, READ_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
}

KIND(vmas_shared_anonymous, "memory", "shared anonymous mapping with a page", .shape = OF_ONE,
     .limit = "max_map_count", .exit = true, .add = add, .remove = pages_unmap);
