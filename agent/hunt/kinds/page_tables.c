// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

static char *memory;

static void prepare(void)
{
	memory = pages_reserve(nr_objects * HUGE_PAGE);
	madvise(memory, nr_objects * HUGE_PAGE, MADV_NOHUGEPAGE);
}

static void add(int64_t i)
{
	memory[i * HUGE_PAGE] = 1;
}

static void remove_one(int64_t i)
{
	MUST(munmap(memory + i * HUGE_PAGE, HUGE_PAGE));
}

static void release(void)
{
	MUST(munmap(memory, nr_objects * HUGE_PAGE));
}

KIND(page_tables, "memory", "page with a page table of its own", .shape = OF_ONE, .limit = "memory",
     .exit = true, .call = "munmap()", .prepare = prepare, .add = add, .remove = remove_one,
     .release = release);
