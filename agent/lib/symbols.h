/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's functions by their addresses, as /proc/kallsyms names them: modules too, and any
 * image. */
#ifndef KTEARDOWN_SYMBOLS_H
#define KTEARDOWN_SYMBOLS_H

#include <stdio.h>

#include "workload.h"

struct symbol {
	uint64_t address;
	size_t name; /* where it begins in names */
};

struct symbols {
	struct symbol *all; /* by address, each address once */
	size_t nr, room; /* room in bytes */
	char *names; /* each ends with a zero */
	size_t names_len, names_room;
};

/* 0, or -errno: -EACCES where the kernel shows no addresses. */
int symbols_load(struct symbols *s);
/* The same from a text like that of /proc/kallsyms. */
int symbols_read(struct symbols *s, FILE *file);
void symbols_free(struct symbols *s);

/* Which symbol the address lies in, or -1 where it lies before the first. */
int symbols_find(const struct symbols *s, uint64_t address);
const char *symbols_name(const struct symbols *s, int which);

#endif
