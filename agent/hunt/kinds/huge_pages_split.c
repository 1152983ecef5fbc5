// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

static char *memory;

static void prepare(void)
{
	memory = pages_reserve((nr_objects + 1) * HUGE_PAGE);
	memory += -(uintptr_t)memory % HUGE_PAGE;
	MUST(madvise(memory, nr_objects * HUGE_PAGE, MADV_HUGEPAGE));
}

/* Half of it is unmapped: it waits to be split. */
static void add(int64_t i)
{
	memory[i * HUGE_PAGE] = 1;
	MUST(madvise(memory + i * HUGE_PAGE, HUGE_PAGE / 2, MADV_DONTNEED));
}

static void remove_one(int64_t i)
{
	MUST(munmap(memory + i * HUGE_PAGE, HUGE_PAGE));
}

KIND(huge_pages_split, "memory", "huge page, half of it unmapped", .shape = OF_ONE,
     .limit = "memory", .needs = "CONFIG_TRANSPARENT_HUGEPAGE", .most = 500, .exit = true,
     .prepare = prepare, .add = add, .remove = remove_one);
