/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tenants: processes that use memory in a cgroup of their own, and move out of it, so that
 * it can be removed while all of the memory is still charged to it. A tenant executes one
 * order, reports that it is done, and waits for the next.
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
#define TENANT_HUGE_BYTES (2 << 20) /* a huge page if the kernel has them */

enum order {
	ORDER_NONE,
	ORDER_FILL, /* enter the cgroup; write files, touch memory, map a file; leave */
	ORDER_REMAP, /* unmap and map the file again and again until the next order */
	ORDER_STILL, /* leave the file mapped and do nothing */
	ORDER_HALVE, /* remove half of the files and half of the memory */
	ORDER_EMPTY, /* remove the rest */
	ORDER_END,
};

/* One tenant, in memory that it shares with the agent. */
struct tenant {
	_Atomic int order, done, failed; /* failed: an errno */
	char cgroup[96], away[96]; /* the cgroup that it fills; where it is otherwise */
	char folder[96]; /* of its files */
	int number;
	pid_t pid;
};

/* Writes a new file of this many pages; it still exists when this returns. 0 or -errno. */
int tenant_write(const char *name, int pages);
/* Maps and touches the file, or MAP_FAILED; unmaps it and touches it once more. */
char *tenant_map(const char *name, size_t bytes);
void tenant_remap(char *map, size_t bytes);

/* Starts a process for the tenant; -1 if it cannot. */
pid_t tenant_start(struct tenant *tenant);
/*
 * Gives the order and waits until it is done (ORDER_REMAP: has begun). 0, or the -errno of
 * what failed.
 */
int tenant_order(struct tenant *tenant, enum order order);

#endif
