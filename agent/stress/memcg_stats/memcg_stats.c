// SPDX-License-Identifier: GPL-2.0
/*
 * Memory cgroups that are removed while memory is charged to them: does the cgroup above
 * them still count correctly?
 *
 * The kernel shows a negative counter as 0. So a ballast of everything that is counted
 * stays in another cgroup beside them, which is not removed: both missing and doubled
 * counts become visible.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "churners.h"
#include "counter_checks.h"
#include "lib/cgroup.h"
#include "lib/kmsg.h"
#include "lib/tasks.h"
#include "tenants.h"
#include "workload.h"

#define TOP CGROUP_ROOT "memcg_stats"
#define UPPER TOP "/upper"
#define AWAY TOP "/away"
#define BALLAST TOP "/ballast"
/*
 * The kernel charges per-CPU memory to no cgroup if it comes from its first chunk
 * (pcpu_alloc_first_chunk()): these cgroups use that chunk up and do nothing else.
 */
#define IDLE TOP "/idle%d"
#define NR_IDLE 40
#define DRAIN CGROUP_ROOT "memcg_stats_drain"
#define FILES "/memcg_stats"

#define MAX_TENANTS 32
#define CHECK_MS 5
/* In the storm: counters are read for this long, then not read for this long. */
#define UNREAD_MS 200
/* Pages that a tenant touches in addition to those it is ordered to, at most. */
#define TENANT_OWN_PAGES 64
#define STEADY_MS 300 /* no change for this long: late releases are done */
#define PATIENCE_MS 20000

static struct shared {
	struct tenant tenants[MAX_TENANTS], ballast;
	struct churners churners;
	struct page_totals totals;
} * shared;

static struct counter_checks checks;
static int nr_tenants, log_fd = -1;

static int failed(struct trial *t, const char *what, int error)
{
	return wl_fail(t, "%s: %s", what, strerror(-error));
}

/* -- one round: cgroups that are removed while only mappings change -- */

static int order_all(struct trial *t, enum order order)
{
	for (int i = 0; i < nr_tenants; i++) {
		int error = tenant_order(&shared->tenants[i], order);

		if (error)
			return wl_fail(t, "tenant %d cannot carry out order %d: %s", i, order,
				       strerror(-error));
	}
	return 0;
}

static int start_tenant(struct trial *t, struct tenant *tenant, int number, const char *cgroup,
			const char *away)
{
	int error = cgroup_make(cgroup);

	if (error)
		return wl_fail(t, "cannot make %s: %s", cgroup, strerror(-error));
	tenant->number = number;
	snprintf(tenant->cgroup, sizeof(tenant->cgroup), "%s", cgroup);
	snprintf(tenant->away, sizeof(tenant->away), "%s", away);
	snprintf(tenant->folder, sizeof(tenant->folder), FILES "/%d", number % checks.nodes);
	tenant->pid = tenant_start(tenant);
	return tenant->pid < 0 ? wl_fail(t, "cannot fork: %m") : 0;
}

static int enable_memory_below(struct trial *t, const char *cgroup)
{
	char file[160];
	int error;

	snprintf(file, sizeof(file), "%s/cgroup.subtree_control", cgroup);
	error = write_file(file, "+memory");
	return error ? wl_fail(t, "cannot write %s: %s; the kernel needs MEMCG", file,
			       strerror(-error))
		     : 0;
}

/* Half of the tenants are one level deeper than the others. */
static int start_tenants(struct trial *t)
{
	char cgroup[96];

	if (cgroup_make(UPPER) || enable_memory_below(t, UPPER))
		return wl_fail(t, "cannot make %s", UPPER);
	for (int i = 0; i < nr_tenants; i++) {
		snprintf(cgroup, sizeof(cgroup), i % 2 ? UPPER "/%d" : TOP "/%d", i);
		if (start_tenant(t, &shared->tenants[i], i, cgroup, AWAY))
			return -1;
	}
	return 0;
}

static int remove_cgroups(struct trial *t)
{
	int error = 0;

	for (int i = 0; i < nr_tenants && !error; i++)
		error = cgroup_remove(shared->tenants[i].cgroup, PATIENCE_MS);
	if (!error)
		error = cgroup_remove(UPPER, PATIENCE_MS);
	return error ? failed(t, "cannot remove the cgroups", error) : 0;
}

/* The kernel releases memory late: wait until nothing changes any more. */
static int sample_percpu(struct trial *t, int64_t before)
{
	int64_t end = now_ns() + PATIENCE_MS * 1000000LL, last = -1, since = now_ns();
	int64_t dying = cgroup_value(TOP, "cgroup.stat", "nr_dying_descendants");

	while (now_ns() < end && now_ns() - since < STEADY_MS * 1000000LL) {
		if (check_counters(t, &checks, "while they are dying"))
			return -1;
		if (checks.counters.percpu != last)
			since = now_ns();
		last = checks.counters.percpu;
		sleep_ms(CHECK_MS);
	}
	if (dying != nr_tenants + 1)
		return wl_fail(t, "%lld cgroups are dying; expected %d", (long long)dying,
			       nr_tenants + 1);
	wl_sample(t, "dying_percpu_kb", (last - before) / dying / 1024);
	return 0;
}

/*
 * Every check flushes the counters. Without one, they are still on the CPUs when the
 * cgroups are removed.
 */
static int remove_unread(struct trial *t, int64_t anon)
{
	int64_t most = TENANT_ANON_PAGES * ACCOUNTING_PAGE + TENANT_HUGE_BYTES;
	int64_t own = TENANT_OWN_PAGES * ACCOUNTING_PAGE;

	if (remove_cgroups(t))
		return -1;
	sleep_ms(STEADY_MS);
	if (expect_counters(t, &checks, -1))
		return -1;
	judge_counter(&checks, ANON_COUNT, "removed without a check", checks.counters.anon,
		      anon + nr_tenants * most, anon + nr_tenants * (most + own));
	return 0;
}

/* From the moment of removal on nothing may be missing. */
static int remove_while_read(struct trial *t)
{
	if (expect_counters(t, &checks, -1) || check_counters(t, &checks, "filled") ||
	    remove_cgroups(t))
		return -1;
	return check_counters_often(t, &checks, "just removed");
}

/*
 * Nothing is charged or freed, but files are mapped and unmapped all the time: the
 * counters are in use whenever the kernel releases them.
 */
static int remove_in_use(struct trial *t, bool unread, const struct memcg_counters *before)
{
	int64_t anon = before->anon, percpu = before->percpu;

	if (order_all(t, ORDER_REMAP))
		return -1;
	if (unread ? remove_unread(t, anon) : remove_while_read(t))
		return -1;
	if (sample_percpu(t, percpu) || order_all(t, ORDER_STILL))
		return -1;
	checks.mapped = (int64_t)(1 + nr_tenants) * TENANT_MAPPED_PAGES * ACCOUNTING_PAGE;
	return check_counters(t, &checks, "after mapping again and again");
}

static int release_memory(struct trial *t)
{
	int64_t half = TENANT_ANON_PAGES / 2 * ACCOUNTING_PAGE;

	/* From here on inodes and dentries are freed. */
	checks.slab = -1;
	if (order_all(t, ORDER_HALVE))
		return -1;
	checks.anon -= nr_tenants * (half + TENANT_HUGE_BYTES);
	if (check_counters(t, &checks, "after half of it was freed") || order_all(t, ORDER_EMPTY))
		return -1;
	checks.anon -= nr_tenants * half;
	checks.mapped -= (int64_t)nr_tenants * TENANT_MAPPED_PAGES * ACCOUNTING_PAGE;
	return check_counters(t, &checks, "after all of it was freed");
}

static int end_tenants(struct trial *t)
{
	for (int i = 0; i < nr_tenants; i++) {
		tenant_order(&shared->tenants[i], ORDER_END);
		if (task_reap(shared->tenants[i].pid, PATIENCE_MS))
			return wl_fail(t, "tenant %d did not exit successfully", i);
	}
	return 0;
}

static int one_round(struct trial *t, bool unread)
{
	int64_t pages = TENANT_MAPPED_PAGES, stock = slab_stock_bytes(&checks);
	static struct memcg_counters before;

	if (expect_counters(t, &checks, pages) || check_counters(t, &checks, "before"))
		return -1;
	before = checks.counters;
	if (start_tenants(t) || order_all(t, ORDER_FILL) || remove_in_use(t, unread, &before))
		return -1;
	if (release_memory(t) || end_tenants(t))
		return -1;
	wait_until_none_dying(&checks, "after a round", PATIENCE_MS);
	if (expect_counters(t, &checks, pages))
		return -1;
	judge_counter(&checks, SLAB_COUNT, "after a round", checks.counters.slab,
		      before.slab - stock, before.slab + stock);
	return check_counters(t, &checks, "after a round");
}

/* -- the storm: cgroups that die while they are used and others are made -- */

static int storm(struct trial *t)
{
	static const struct churn_place place = {.parent = TOP, .away = AWAY, .at = FILES};
	int64_t base = file_bytes_expected(&checks);
	int64_t end = now_ns() + wl_param_int(t, "storm_ms") * 1000000;

	if (churners_start(t, &shared->churners, &place, checks.nodes, &shared->totals))
		return -1;
	while (now_ns() < end) {
		int64_t check_until = now_ns() + UNREAD_MS * 1000000LL;

		while (now_ns() < check_until)
			if (check_counters_in_storm(t, &checks, &shared->totals, base))
				return -1;
		sleep_ms(UNREAD_MS);
	}
	if (churners_stop(t, &shared->churners) ||
	    expect_counters(t, &checks, TENANT_MAPPED_PAGES) ||
	    check_counters_often(t, &checks, "after the storm") ||
	    churners_end(t, &shared->churners))
		return -1;
	wait_until_none_dying(&checks, "after the storm", PATIENCE_MS);
	return 0;
}

/* -- the whole workload -- */

static int run(struct trial *t)
{
	static char before[ACCOUNTING_TEXT];
	int64_t rounds = wl_param_int(t, "rounds");
	struct kmsg m;
	int got;

	memset(checks.results, 0, sizeof(checks.results));
	if (expect_counters(t, &checks, TENANT_MAPPED_PAGES))
		return -1;
	memcpy(before, checks.counters.text, sizeof(before));
	for (int64_t i = 0; i < rounds; i++) {
		wl_alive(t, "round %lld", (long long)i);
		if (one_round(t, i % 2 == 0))
			return -1;
	}
	wl_alive(t, "storm");
	if (storm(t) || expect_counters(t, &checks, TENANT_MAPPED_PAGES) ||
	    check_counters(t, &checks, "at the end"))
		return -1;
	compare_counters(&checks, before);
	report_counter_checks(t, &checks);
	got = kmsg_problem(log_fd, &m);
	wl_check(t, "log_clean", !got, "%s", got > 0 ? m.text : strerror(-got));
	return 0;
}

static int make_cgroups(struct trial *t)
{
	char cgroup[96];

	if (enable_memory_below(t, CGROUP_ROOT) || cgroup_make(TOP) || enable_memory_below(t, TOP))
		return wl_fail(t, "cannot make %s", TOP);
	if (cgroup_make(AWAY) || cgroup_make(DRAIN))
		return wl_fail(t, "cannot make %s", AWAY);
	for (int i = 0; i < NR_IDLE; i++) {
		snprintf(cgroup, sizeof(cgroup), IDLE, i);
		if (cgroup_make(cgroup))
			return wl_fail(t, "cannot make %s", cgroup);
	}
	return 0;
}

static int start_ballast(struct trial *t)
{
	int error;

	if (start_tenant(t, &shared->ballast, MAX_TENANTS, BALLAST, BALLAST))
		return -1;
	error = tenant_order(&shared->ballast, ORDER_FILL);
	return error ? failed(t, "cannot fill the ballast", error) : 0;
}

static int setup(struct trial *t)
{
	nr_tenants = (int)wl_param_int(t, "tenants");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return wl_fail(t, "cannot mmap memory: %m");
	checks = (struct counter_checks){.cgroup = TOP, .drain = DRAIN, .files = FILES};
	checks.cpus = sysconf(_SC_NPROCESSORS_ONLN);
	checks.nodes = accounting_mount(FILES);
	if (checks.nodes < 0)
		return failed(t, "cannot mount " FILES " (the kernel needs TMPFS and NUMA)",
			      checks.nodes);
	log_fd = kmsg_open();
	if (log_fd < 0)
		return failed(t, "cannot read /dev/kmsg", log_fd);
	return make_cgroups(t) || start_ballast(t) ? -1 : 0;
}

static void end(pid_t pid)
{
	if (pid > 0)
		kill(pid, SIGKILL);
}

static void cleanup(struct trial *t)
{
	static const char *const cgroups[] = {AWAY, BALLAST, UPPER, TOP, DRAIN};
	char idle[96];

	(void)t;
	for (int i = 0; shared != MAP_FAILED && i < nr_tenants; i++)
		end(shared->tenants[i].pid);
	for (int i = 0; shared != MAP_FAILED && i < shared->churners.nr; i++)
		end(shared->churners.all[i].pid);
	kill_and_reap_all(shared == MAP_FAILED ? 0 : shared->ballast.pid);
	accounting_unmount(FILES, checks.nodes);
	for (int i = 0; i < NR_IDLE; i++) {
		snprintf(idle, sizeof(idle), IDLE, i);
		cgroup_remove(idle, 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(cgroups); i++)
		cgroup_remove(cgroups[i], PATIENCE_MS);
	if (log_fd >= 0)
		close(log_fd);
	log_fd = -1;
}

static const char *const params[] = {"tenants", "churners", "rounds", "storm_ms", "seed", NULL};
static const struct workload memcg_stats = {
	.name = "memcg_stats",
	.summary = "remove memory cgroups that are in use, and compare the kernel's counters with "
		   "what is there",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(memcg_stats);
