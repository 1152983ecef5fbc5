// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/forks.h"
#include "hunt/lib/swap.h"

static void swap_one(int64_t i)
{
	swap_out(1, i);
}

static void make(void)
{
	forks_make(swap_one);
	MUST(swap_used() < nr_objects / 2 ? -1 : 0);
}

KIND(processes_swapped, "memory",
     "process with a page that is swapped out, until the swap space ends", .modules = "zram",
     .shape = ON_ONE, .limit = "nproc", .needs = "CONFIG_ZRAM", .privileged = true,
     .call = "swapoff()", .prepare = swap_prepare, .make = make, .remove = forks_kill_one,
     .release = swap_end);
