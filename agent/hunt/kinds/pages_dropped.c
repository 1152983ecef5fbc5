// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

static char *memory;

static void prepare(void)
{
	memory = pages_reserve(nr_objects * PAGE);
	madvise(memory, nr_objects * PAGE, MADV_NOHUGEPAGE);
}

static void add(int64_t i)
{
	memory[i * PAGE] = 1;
}

static void remove_one(int64_t i)
{
	MUST(madvise(memory + i * PAGE, PAGE, MADV_DONTNEED));
}

static void release(void)
{
	MUST(madvise(memory, nr_objects * PAGE, MADV_DONTNEED));
}

KIND(pages_dropped, "memory", "page of one anonymous mapping", .shape = OF_ONE, .limit = "memory",
     .exit = true, .call = "madvise(MADV_DONTNEED)", .prepare = prepare, .add = add,
     .remove = remove_one, .release = release);
