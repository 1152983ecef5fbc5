/* SPDX-License-Identifier: GPL-2.0 */
/* Mappings of a page each, or pages of one mapping. */
#ifndef KTEARDOWN_HUNT_PAGES_H
#define KTEARDOWN_HUNT_PAGES_H

#include "hunt/kind.h"

#define PAGE 4096
#define HUGE_PAGE (1L << 21)

#define READ_WRITE (PROT_READ | PROT_WRITE)

/* Where the objects are, for kinds that have a mapping for each. */
static char **pages;

/* Mappings beside each other are one if their rights are the same. */
static inline int pages_rights(int64_t i)
{
	return i % 2 ? READ_WRITE : READ_WRITE | PROT_EXEC;
}

static inline char *pages_map(size_t size, int rights, int flags, int fd)
{
	char *memory = mmap(NULL, size, rights, flags, fd, 0);

	MUST((long)memory);
	return memory;
}

/* Memory without pages. */
static inline char *pages_reserve(size_t size)
{
	return pages_map(size, READ_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

/* The mapping of object i; its first byte is written. */
static inline void pages_add(int64_t i, int rights, int flags, int fd)
{
	if (!pages)
		pages = array(sizeof(*pages));
	pages[i] = pages_map(PAGE, rights, flags, fd);
	*(volatile char *)pages[i] = 1;
}

static inline void pages_unmap(int64_t i)
{
	MUST(munmap(pages[i], PAGE));
}

#endif
