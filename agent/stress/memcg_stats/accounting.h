/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What memory cgroups report, and what must be there.
 *
 * Files are in tmpfs, one mount for each NUMA node, whose pages are all on that node:
 * statfs() says how many there are. While other processes write and remove files, the
 * exact number is unknown. So every writer counts its pages before and after it writes,
 * and before and after it removes. What the kernel counted meanwhile has to be between the
 * two.
 */
#ifndef KTEARDOWN_ACCOUNTING_H
#define KTEARDOWN_ACCOUNTING_H

#include <stdatomic.h>

#include "workload.h"

#define ACCOUNTING_NODES 8
#define ACCOUNTING_PAGE 4096
#define ACCOUNTING_TEXT 8192

/* Pages since the churners were started, in memory that all writers share. */
struct page_totals {
	_Atomic int64_t to_write, written, to_remove, removed;
};

/* What a cgroup and all cgroups below it hold, in bytes; exact while no task changes anything. */
struct memcg_counters {
	char text[ACCOUNTING_TEXT]; /* the text of memory.stat */
	int64_t file, shmem, anon, mapped, slab, percpu, faults;
	int64_t node_file[ACCOUNTING_NODES];
	int nr_nodes;
};

/* Mounts "at"/0, "at"/1, ... for the nodes that have memory. Returns their number, or -errno. */
int accounting_mount(const char *at);
void accounting_unmount(const char *at, int nodes);
/* The size of all files of the node's mount in bytes; -errno. */
int64_t accounting_node_bytes(const char *at, int node);

/*
 * Reads the counters. Reading memory.stat flushes only above a threshold
 * (MEMCG_CHARGE_BATCH pages for each CPU), but reading cpu.stat always flushes all
 * controllers (cgroup_base_stat_cputime_show()): so cpu.stat is read first. 0 or -errno.
 */
int memcg_counters_read(const char *cgroup, int nodes, struct memcg_counters *h);

/* CPUs keep slab statistics until they charge another cgroup: makes each CPU charge this one. */
int accounting_drain_stocks(const char *cgroup);

#endif
