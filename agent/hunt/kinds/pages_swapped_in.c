// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/swap.h"

static void make(void)
{
	swap_out(nr_objects, 0);
	MUST(swap_used() < nr_objects / 2 ? -1 : 0);
}

KIND(pages_swapped_in, "memory",
     "page of one mapping that is swapped out, until the swap space ends", .modules = "zram",
     .shape = OF_ONE, .limit = "swap", .most = 200000, .needs = "CONFIG_ZRAM", .privileged = true,
     .call = "swapoff()", .prepare = swap_prepare, .make = make, .release = swap_end);
