/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tenants: processes that use memory in a cgroup of their own, and move out so
 * that it can be removed while all of it is still charged there.
 *
 * A tenant does one thing that it is told, says so, and waits.
 */
#ifndef KTEARDOWN_TENANTS_H
#define KTEARDOWN_TENANTS_H

#include <sys/types.h>

#include "accounting.h"

#define TENANT_FILES 8
#define TENANT_FILE_PAGES 32
#define TENANT_EMPTY_FILES 50
#define TENANT_ANON_PAGES 256
#define TENANT_MAPPED_PAGES TENANT_FILE_PAGES
#define TENANT_HUGE_BYTES (2 << 20) /* a huge page where the kernel has such */

enum order {
	ORDER_NONE,
	ORDER_FILL, /* enter the cgroup; write files, touch memory, map a file; leave */
	ORDER_REMAP, /* unmap and map the file, over and over, until the next order */
	ORDER_STILL, /* leave it mapped, and do nothing */
	ORDER_HALVE, /* remove half of the files, half of the memory */
	ORDER_EMPTY, /* remove what is left */
	ORDER_END,
};

/* One tenant, in memory that it shares with the agent. */
struct tenant {
	_Atomic int order, done, failed; /* failed: an errno */
	char cgroup[96], away[96]; /* where it fills, and where it is otherwise */
	char folder[96]; /* of its files */
	int number;
	pid_t pid;
};

/* A new file with so many pages in it; it stays when this returns. 0 or -errno. */
int tenant_write(const char *name, int pages);
/* The file mapped and touched, or MAP_FAILED; and unmapped and touched once more. */
char *tenant_map(const char *name, size_t bytes);
void tenant_remap(char *map, size_t bytes);

/* A process for the tenant, or -1. */
pid_t tenant_start(struct tenant *tenant);
/* Tell it, and wait until it is done (ORDER_REMAP: has begun). 0, or -errno of what failed. */
int tenant_order(struct tenant *tenant, enum order order);

#endif
