/* SPDX-License-Identifier: GPL-2.0 */
/* What the guest's memory is used for, in kB, from /proc/meminfo. */
#ifndef KTEARDOWN_MEMINFO_H
#define KTEARDOWN_MEMINFO_H

#include "workload.h"

struct meminfo {
	int64_t free, available;
	int64_t slab, percpu, stacks, page_tables, anonymous;
};

/* Per-CPU counters are summed up first. 0 or -errno. */
int meminfo_read(struct meminfo *m);
/* The number in a line such as "MemFree: 123 kB" of the text; -1 if there is no such line. */
int64_t meminfo_field(const char *text, const char *name);

#endif
