// SPDX-License-Identifier: GPL-2.0
#include "memcg_looks.h"

#include <stdio.h>
#include <string.h>

#include "lib/cgroup.h"

#define LOOKS 20 /* while cgroups that were just removed go offline */
#define LOOK_MS 5
/* A look at what changes can miss what the kernel itself leaves out (MEMCG_CHARGE_BATCH), no more.
 */
#define BATCH_PAGES 64

static const char *const names[INVARIANTS] = {
	[FILES_COUNT] = "files_count",	 [NODES_COUNT] = "nodes_count",
	[MAPPED_COUNT] = "mapped_count", [ANON_COUNT] = "anon_count",
	[SLAB_COUNT] = "slab_count",	 [EVENTS_STAY] = "events_stay",
	[STORM_BOUNDS] = "storm_bounds", [ALL_BACK] = "all_back",
	[ALL_GONE] = "all_gone",
};

/* Of memory.stat, what is as it was when everything else is. */
static const char *const gauges[] = {
	"anon",		  "file",     "shmem",	      "file_mapped", "file_dirty",
	"file_writeback", "anon_thp", "file_thp",     "shmem_thp",   "percpu",
	"sock",		  "vmalloc",  "kernel_stack", "unevictable",
};

int64_t looks_file_bytes(const struct looks *l)
{
	int64_t bytes = 0;

	for (int i = 0; i < l->nodes; i++)
		bytes += ledger_node_bytes(l->files, i);
	return bytes;
}

/* Each CPU keeps up to a page of each kind to itself (mod_objcg_state()). */
int64_t looks_stock(const struct looks *l)
{
	return 2 * l->cpus * LEDGER_PAGE;
}

void looks_judge(struct looks *l, enum invariant which, const char *where, int64_t seen,
		 int64_t low, int64_t high)
{
	struct verdict *v = &l->verdicts[which];

	v->looked = true;
	if ((low <= seen && seen <= high) || v->failed)
		return;
	v->failed = true;
	snprintf(v->detail, sizeof(v->detail), "%s: %lld, not %lld to %lld", where, (long long)seen,
		 (long long)low, (long long)high);
}

static void judge_faults(struct looks *l, const char *where)
{
	looks_judge(l, EVENTS_STAY, where, l->held.faults, l->faults, INT64_MAX);
	l->faults = l->held.faults;
}

static int read_counters(struct trial *t, struct looks *l)
{
	int error = held_read(l->cgroup, l->nodes, &l->held);

	return error ? wl_fail(t, "the counters of %s: %s", l->cgroup, strerror(-error)) : 0;
}

int look(struct trial *t, struct looks *l, const char *where)
{
	int64_t files = looks_file_bytes(l), stock = looks_stock(l);
	const struct held *h = &l->held;

	if (read_counters(t, l))
		return -1;
	looks_judge(l, FILES_COUNT, where, h->file, files, files);
	looks_judge(l, FILES_COUNT, where, h->shmem, files, files);
	for (int i = 0; i < l->nodes; i++) {
		int64_t bytes = ledger_node_bytes(l->files, i);

		looks_judge(l, NODES_COUNT, where, h->node_file[i], bytes, bytes);
	}
	if (l->mapped >= 0)
		looks_judge(l, MAPPED_COUNT, where, h->mapped, l->mapped, l->mapped);
	looks_judge(l, ANON_COUNT, where, h->anon, l->anon, l->anon);
	if (l->slab >= 0)
		looks_judge(l, SLAB_COUNT, where, h->slab, l->slab - stock, l->slab + stock);
	judge_faults(l, where);
	return 0;
}

int look_often(struct trial *t, struct looks *l, const char *where)
{
	for (int i = 0; i < LOOKS; i++) {
		if (look(t, l, where))
			return -1;
		sleep_ms(LOOK_MS);
	}
	return 0;
}

int look_expect(struct trial *t, struct looks *l, int64_t mapped_pages)
{
	int error = ledger_drain_stocks(l->drain);

	if (error)
		return wl_fail(t, "working on each CPU in %s: %s", l->drain, strerror(-error));
	if (read_counters(t, l))
		return -1;
	l->anon = l->held.anon;
	l->slab = l->held.slab;
	l->mapped = mapped_pages < 0 ? -1 : mapped_pages * LEDGER_PAGE;
	return 0;
}

int look_into_storm(struct trial *t, struct looks *l, struct ledger *ledger, int64_t base)
{
	int64_t written = ledger->written, removed = ledger->removed, low, high;
	int64_t unseen = BATCH_PAGES * l->cpus;

	if (read_counters(t, l))
		return -1;
	low = base + (written - ledger->to_remove - unseen) * LEDGER_PAGE;
	high = base + (ledger->to_write - removed + unseen) * LEDGER_PAGE;
	looks_judge(l, STORM_BOUNDS, "file", l->held.file, low, high);
	looks_judge(l, STORM_BOUNDS, "shmem", l->held.shmem, low, high);
	judge_faults(l, "in the storm");
	return 0;
}

void looks_compare(struct looks *l, const char *before)
{
	for (size_t i = 0; i < ARRAY_SIZE(gauges); i++) {
		int64_t was = cgroup_value_in(before, gauges[i]);

		looks_judge(l, ALL_BACK, gauges[i], cgroup_value_in(l->held.text, gauges[i]), was,
			    was);
	}
}

void looks_wait_until_gone(struct looks *l, const char *where, int64_t limit_ms)
{
	int64_t end = now_ns() + limit_ms * 1000000, dying;

	do {
		sleep_ms(LOOK_MS);
		dying = cgroup_value(l->cgroup, "cgroup.stat", "nr_dying_descendants");
	} while (dying && now_ns() < end);
	looks_judge(l, ALL_GONE, where, dying, 0, 0);
}

void looks_report(struct trial *t, const struct looks *l)
{
	for (int i = 0; i < INVARIANTS; i++)
		if (l->verdicts[i].looked)
			wl_check(t, names[i], !l->verdicts[i].failed, "%s", l->verdicts[i].detail);
}
