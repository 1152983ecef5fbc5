/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's functions by address, from /proc/kallsyms. It includes modules and works
 * for any kernel image.
 */
#ifndef KTEARDOWN_SYMBOLS_H
#define KTEARDOWN_SYMBOLS_H

#include <stdio.h>

#include "workload.h"

struct symbol {
	uint64_t address;
	size_t name; /* where it begins in names */
};

struct symbols {
	struct symbol *all; /* sorted by address, each address once */
	size_t nr, room; /* room in bytes */
	char *names; /* each ends with a zero */
	size_t names_len, names_room;
};

/* 0, or -errno: -EACCES if the kernel hides its addresses. */
int symbols_load(struct symbols *s);
/* The same from a text like that of /proc/kallsyms. */
int symbols_read(struct symbols *s, FILE *file);
void symbols_free(struct symbols *s);

/*
 * The index of the symbol that contains the address, or -1 if the address is before the
 * first symbol.
 */
int symbols_find(const struct symbols *s, uint64_t address);
const char *symbols_name(const struct symbols *s, int which);

#endif
