/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What memory cgroups say that they hold, beside what is known to be there.
 *
 * Files lie in tmpfs, one mount for each NUMA node, whose pages are all on that
 * node: statfs() tells how many there are. While others write and remove, nobody
 * can tell exactly; so every writer notes the pages before and after it writes,
 * and before and after it removes. Whatever the kernel counted in between has to
 * lie between the two.
 */
#ifndef KTEARDOWN_ACCOUNTING_H
#define KTEARDOWN_ACCOUNTING_H

#include <stdatomic.h>

#include "workload.h"

#define ACCOUNTING_NODES 8
#define ACCOUNTING_PAGE 4096
#define ACCOUNTING_TEXT 8192

/* In memory that all writers share. Pages, since the ledger began. */
struct page_totals {
	_Atomic int64_t to_write, written, to_remove, removed;
};

/* What a cgroup and all below it hold, exact where nobody changes anything meanwhile. Bytes. */
struct memcg_counters {
	char text[ACCOUNTING_TEXT]; /* memory.stat */
	int64_t file, shmem, anon, mapped, slab, percpu, faults;
	int64_t node_file[ACCOUNTING_NODES];
	int nr_nodes;
};

/* Mounts "at"/0, "at"/1, ... for the nodes that have memory. Their number, or -errno. */
int accounting_mount(const char *at);
void accounting_unmount(const char *at, int nodes);
/* Bytes of all files of the node's mount; -errno. */
int64_t accounting_node_bytes(const char *at, int node);

/*
 * Reading memory.stat flushes only where the kernel thinks it worth while
 * (MEMCG_CHARGE_BATCH pages for each CPU), but cpu.stat always flushes all
 * controllers (cgroup_base_stat_cputime_show()): it is read first. 0 or -errno.
 */
int memcg_counters_read(const char *cgroup, int nodes, struct memcg_counters *h);

/* Slab statistics that CPUs keep until they work for another cgroup: let each work for this one. */
int accounting_drain_stocks(const char *cgroup);

#endif
