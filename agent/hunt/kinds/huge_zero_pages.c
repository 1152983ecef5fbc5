// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

static char *memory;

static void prepare(void)
{
	memory = pages_reserve((nr_objects + 1) * HUGE_PAGE);
	memory += -(uintptr_t)memory % HUGE_PAGE;
	MUST(madvise(memory, nr_objects * HUGE_PAGE, MADV_HUGEPAGE));
}

/* A page that is only read is the one huge page of zeros. */
static void add(int64_t i)
{
	(void)*(volatile char *)(memory + i * HUGE_PAGE);
}

static void remove_one(int64_t i)
{
	MUST(munmap(memory + i * HUGE_PAGE, HUGE_PAGE));
}

static void release(void)
{
	MUST(munmap(memory, nr_objects * HUGE_PAGE));
}

KIND(huge_zero_pages, "memory", "mapping of the huge page of zeros", .shape = ON_ONE,
     .limit = "memory", .needs = "CONFIG_TRANSPARENT_HUGEPAGE", .exit = true, .call = "munmap()",
     .prepare = prepare, .add = add, .remove = remove_one, .release = release);
