// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

static char *memory;

static void make(void)
{
	memory = pages_reserve(nr_objects * PAGE);
	memset(memory, 1, nr_objects * PAGE);
	MUST(madvise(memory, nr_objects * PAGE, MADV_FREE));
}

static void release(void)
{
	MUST(munmap(memory, nr_objects * PAGE));
}

KIND(pages_lazily_freed, "memory", "page of one mapping after MADV_FREE", .shape = OF_ONE,
     .limit = "memory", .exit = true, .call = "munmap()", .make = make, .release = release);
