// SPDX-License-Identifier: GPL-2.0
#include "control.h"

#define PAGE 4096L

/* One page more for every 32 objects before it. */
static void add(int64_t i)
{
	MUST((long)mmap(NULL, (1 + i / 32) * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
}

KIND(control_memory, "controls", "mapping: of as many pages as there are, divided by 32",
     .shape = OF_ONE, .exit = true, .limit = "memory", .add = add);
