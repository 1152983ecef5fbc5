// SPDX-License-Identifier: GPL-2.0
#include "counter_checks.h"

#include <stdio.h>
#include <string.h>

#include "lib/cgroup.h"

#define CHECKS 20 /* while cgroups that were just removed go offline */
#define CHECK_MS 5
/*
 * During changes a check can miss what the kernel itself leaves out (MEMCG_CHARGE_BATCH),
 * and no more.
 */
#define BATCH_PAGES 64

static const char *const names[INVARIANTS] = {
	[FILES_COUNT] = "files_count",	 [NODES_COUNT] = "nodes_count",
	[MAPPED_COUNT] = "mapped_count", [ANON_COUNT] = "anon_count",
	[SLAB_COUNT] = "slab_count",	 [EVENTS_STAY] = "events_stay",
	[STORM_BOUNDS] = "storm_bounds", [ALL_BACK] = "all_back",
	[ALL_GONE] = "all_gone",
};

/* The counters of memory.stat that return to their values when everything else does. */
static const char *const current_values[] = {
	"anon",		  "file",     "shmem",	      "file_mapped", "file_dirty",
	"file_writeback", "anon_thp", "file_thp",     "shmem_thp",   "percpu",
	"sock",		  "vmalloc",  "kernel_stack", "unevictable",
};

int64_t file_bytes_expected(const struct counter_checks *l)
{
	int64_t bytes = 0;

	for (int i = 0; i < l->nodes; i++)
		bytes += accounting_node_bytes(l->files, i);
	return bytes;
}

/* Each CPU keeps up to a page of each kind to itself (mod_objcg_state()). */
int64_t slab_stock_bytes(const struct counter_checks *l)
{
	return 2 * l->cpus * ACCOUNTING_PAGE;
}

void judge_counter(struct counter_checks *l, enum invariant which, const char *where, int64_t seen,
		   int64_t low, int64_t high)
{
	struct check_result *v = &l->results[which];

	v->checked = true;
	if ((low <= seen && seen <= high) || v->failed)
		return;
	v->failed = true;
	snprintf(v->detail, sizeof(v->detail), "%s: %lld; expected %lld to %lld", where,
		 (long long)seen, (long long)low, (long long)high);
}

static void judge_faults(struct counter_checks *l, const char *where)
{
	judge_counter(l, EVENTS_STAY, where, l->counters.faults, l->faults, INT64_MAX);
	l->faults = l->counters.faults;
}

static int read_counters(struct trial *t, struct counter_checks *l)
{
	int error = memcg_counters_read(l->cgroup, l->nodes, &l->counters);

	return error ? wl_fail(t, "cannot read the counters of %s: %s", l->cgroup, strerror(-error))
		     : 0;
}

int check_counters(struct trial *t, struct counter_checks *l, const char *where)
{
	int64_t files = file_bytes_expected(l), stock = slab_stock_bytes(l);
	const struct memcg_counters *h = &l->counters;

	if (read_counters(t, l))
		return -1;
	judge_counter(l, FILES_COUNT, where, h->file, files, files);
	judge_counter(l, FILES_COUNT, where, h->shmem, files, files);
	for (int i = 0; i < l->nodes; i++) {
		int64_t bytes = accounting_node_bytes(l->files, i);

		judge_counter(l, NODES_COUNT, where, h->node_file[i], bytes, bytes);
	}
	if (l->mapped >= 0)
		judge_counter(l, MAPPED_COUNT, where, h->mapped, l->mapped, l->mapped);
	judge_counter(l, ANON_COUNT, where, h->anon, l->anon, l->anon);
	if (l->slab >= 0)
		judge_counter(l, SLAB_COUNT, where, h->slab, l->slab - stock, l->slab + stock);
	judge_faults(l, where);
	return 0;
}

int check_counters_often(struct trial *t, struct counter_checks *l, const char *where)
{
	for (int i = 0; i < CHECKS; i++) {
		if (check_counters(t, l, where))
			return -1;
		sleep_ms(CHECK_MS);
	}
	return 0;
}

int expect_counters(struct trial *t, struct counter_checks *l, int64_t mapped_pages)
{
	int error = accounting_drain_stocks(l->drain);

	if (error)
		return wl_fail(t, "cannot charge and free memory on each CPU in %s: %s", l->drain,
			       strerror(-error));
	if (read_counters(t, l))
		return -1;
	l->anon = l->counters.anon;
	l->slab = l->counters.slab;
	l->mapped = mapped_pages < 0 ? -1 : mapped_pages * ACCOUNTING_PAGE;
	return 0;
}

int check_counters_in_storm(struct trial *t, struct counter_checks *l, struct page_totals *totals,
			    int64_t base)
{
	int64_t written = totals->written, removed = totals->removed, low, high;
	int64_t unread = BATCH_PAGES * l->cpus;

	if (read_counters(t, l))
		return -1;
	low = base + (written - totals->to_remove - unread) * ACCOUNTING_PAGE;
	high = base + (totals->to_write - removed + unread) * ACCOUNTING_PAGE;
	judge_counter(l, STORM_BOUNDS, "file", l->counters.file, low, high);
	judge_counter(l, STORM_BOUNDS, "shmem", l->counters.shmem, low, high);
	judge_faults(l, "in the storm");
	return 0;
}

void compare_counters(struct counter_checks *l, const char *before)
{
	for (size_t i = 0; i < ARRAY_SIZE(current_values); i++) {
		int64_t was = cgroup_value_in(before, current_values[i]);

		judge_counter(l, ALL_BACK, current_values[i],
			      cgroup_value_in(l->counters.text, current_values[i]), was, was);
	}
}

void wait_until_none_dying(struct counter_checks *l, const char *where, int64_t limit_ms)
{
	int64_t end = now_ns() + limit_ms * 1000000, dying;

	do {
		sleep_ms(CHECK_MS);
		dying = cgroup_value(l->cgroup, "cgroup.stat", "nr_dying_descendants");
	} while (dying && now_ns() < end);
	judge_counter(l, ALL_GONE, where, dying, 0, 0);
}

void report_counter_checks(struct trial *t, const struct counter_checks *l)
{
	for (int i = 0; i < INVARIANTS; i++)
		if (l->results[i].checked)
			wl_check(t, names[i], !l->results[i].failed, "%s", l->results[i].detail);
}
