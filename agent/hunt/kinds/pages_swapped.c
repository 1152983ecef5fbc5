// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/swap.h"

static char *memory;

static void make(void)
{
	memory = swap_out(nr_objects, 0);
	MUST(swap_used() < nr_objects / 2 ? -1 : 0);
}

static void release(void)
{
	MUST(munmap(memory, nr_objects * PAGE));
}

KIND(pages_swapped, "memory", "page of one mapping that is swapped out", .modules = "zram",
     .shape = OF_ONE, .limit = "swap", .most = 200000, .needs = "CONFIG_ZRAM", .privileged = true,
     .exit = true, .call = "munmap()", .prepare = swap_prepare, .make = make, .release = release);
