// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/forks.h"
#include "hunt/lib/pages.h"

static char *memory;

static void write_page(int64_t i)
{
	memory[0] = (char)i;
}

static void make(void)
{
	memory = pages_reserve(PAGE);
	memory[0] = 1;
	forks_make(write_page);
}

KIND(anon_vma_children, "memory", "process with a copy of one page of its parent", .shape = ON_ONE,
     .limit = "nproc", .make = make, FORKS_KILLED);
