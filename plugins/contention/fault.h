/* SPDX-License-Identifier: GPL-2.0 */
/* What ends QEMU: the lab reports its last words. */
#ifndef FAULT_H
#define FAULT_H

#include <stdio.h>
#include <stdlib.h>

__attribute__((noreturn)) static inline void give_up(const char *why)
{
	fprintf(stderr, "contention plugin: %s\n", why);
	exit(1);
}

static inline void *allocate(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		give_up("not enough memory");
	return memory;
}

#endif
