// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

static char *from, *to;

static void prepare(void)
{
	from = pages_reserve(nr_objects * PAGE);
	memset(from, 1, nr_objects * PAGE);
	to = pages_reserve(2 * nr_objects * PAGE);
}

/* All of them have the anon_vma of the mapping that they come from. */
static void add(int64_t i)
{
	MUST((long)mremap(from + i * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			  to + 2 * i * PAGE));
}

static void remove_one(int64_t i)
{
	MUST(munmap(to + 2 * i * PAGE, PAGE));
}

static void release(void)
{
	MUST(munmap(to, 2 * nr_objects * PAGE));
}

KIND(vmas_moved, "memory", "page of one mapping that mremap() moved away", .shape = OF_ONE,
     .limit = "max_map_count", .exit = true, .call = "munmap()", .prepare = prepare, .add = add,
     .remove = remove_one, .release = release);
