// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>

#include "dontfork.h"

#define FIRST_SIZE 65536

int dontfork_grow(void **memory, size_t *size, size_t wanted)
{
	size_t bigger = *size ? *size : FIRST_SIZE;
	void *moved;

	if (wanted <= *size)
		return 0;
	while (bigger < wanted)
		bigger *= 2;
	moved = *memory ? mremap(*memory, *size, bigger, MREMAP_MAYMOVE)
			: mmap(NULL, bigger, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);
	if (moved == MAP_FAILED)
		return -ENOMEM;
	*memory = moved;
	*size = bigger;
	return madvise(moved, bigger, MADV_DONTFORK) ? -errno : 0;
}

void dontfork_free(void **memory, size_t *size)
{
	if (*memory)
		munmap(*memory, *size);
	*memory = NULL;
	*size = 0;
}
