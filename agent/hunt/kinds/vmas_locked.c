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
	MUST(mlock(memory + 2 * i * PAGE, PAGE));
}

static void remove_one(int64_t i)
{
	MUST(munlock(memory + 2 * i * PAGE, PAGE));
}

static void release(void)
{
	MUST(munlockall());
}

KIND(vmas_locked, "memory", "page of one mapping that is locked, between pages that are not",
     .shape = OF_ONE, .limit = "memlock", .exit = true, .call = "munlockall()", .prepare = prepare,
     .add = add, .remove = remove_one, .release = release);
