// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

static void add(int64_t i)
{
	char *block =
		mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)i;
	MUST((long)block);
	MUST(madvise(block, 1 << 16, MADV_NOHUGEPAGE));
	memset(block, 1, 1 << 16);
}

KIND(exit_memory, "processes", "64 kB of memory of one process that is killed", .shape = OF_ONE,
     .limit = "memory", .exit = true, .add = add);
