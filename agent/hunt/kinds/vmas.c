// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

static void add(int64_t i)
{
	pages_add(i, pages_rights(i), MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

KIND(vmas, "memory", "mapping with a page", .shape = OF_ONE, .limit = "max_map_count", .exit = true,
     .add = add, .remove = pages_unmap);
