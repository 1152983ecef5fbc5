// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

#define APART (1L << 30)

static char *memory;

static void prepare(void)
{
	memory = pages_reserve(nr_objects * APART);
	madvise(memory, nr_objects * APART, MADV_NOHUGEPAGE);
}

static void add(int64_t i)
{
	memory[i * APART] = 1;
}

static void release(void)
{
	MUST(munmap(memory, nr_objects * APART));
}

KIND(page_tables_two_levels, "memory", "page with page tables of two levels of its own",
     .shape = OF_ONE, .limit = "memory", .most = 100000, .exit = true, .call = "munmap()",
     .prepare = prepare, .add = add, .release = release);
