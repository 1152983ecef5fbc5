// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

static void add(int64_t i)
{
	pages_add(i, pages_rights(i), MAP_PRIVATE | MAP_ANONYMOUS, -1);
	MUST(madvise(pages[i], PAGE, MADV_MERGEABLE));
}

static void remove_one(int64_t i)
{
	MUST(madvise(pages[i], PAGE, MADV_UNMERGEABLE));
}

KIND(vmas_mergeable, "memory", "mapping that is advised as mergeable", .shape = OF_ONE,
     .limit = "max_map_count", .needs = "CONFIG_KSM", .exit = true, .add = add,
     .remove = remove_one);
