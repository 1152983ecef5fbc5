// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

static char *memory;

static void prepare(void)
{
	memory = pages_reserve(2 * nr_objects * PAGE);
	memset(memory, 1, 2 * nr_objects * PAGE);
}

static void add(int64_t i)
{
	MUST(mprotect(memory + 2 * i * PAGE, PAGE, PROT_READ));
}

static void remove_one(int64_t i)
{
	MUST(mprotect(memory + 2 * i * PAGE, PAGE, READ_WRITE));
}

static void release(void)
{
	MUST(munmap(memory, 2 * nr_objects * PAGE));
}

KIND(vmas_split, "memory", "page that mprotect() cut out of one mapping", .shape = OF_ONE,
     .limit = "max_map_count", .exit = true, .call = "munmap()", .prepare = prepare, .add = add,
     .remove = remove_one, .release = release);
