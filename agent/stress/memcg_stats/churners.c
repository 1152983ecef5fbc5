// SPDX-License-Identifier: GPL-2.0
#include "churners.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/tasks.h"
#include "tenants.h"

#define CHURN_FILES 4 /* files that it leaves before it removes the oldest */
#define CHURN_PAGES 32 /* of a file */
#define PATIENCE_MS 20000

static void churn_name(char *name, size_t size, const struct churner *me, int64_t round)
{
	snprintf(name, size, "%s/%d/churn%d.%lld", me->place->at, (int)(round % me->nodes),
		 me->number, (long long)round);
}

/* From the end, page by page: each page is a late update of a cgroup that is being removed. */
static int shrink(const char *name, struct page_totals *totals, char *map)
{
	for (int left = CHURN_PAGES - 1; left >= 0; left--) {
		atomic_fetch_add(&totals->to_remove, 1);
		if (truncate(name, (off_t)left * ACCOUNTING_PAGE))
			return -errno;
		atomic_fetch_add(&totals->removed, 1);
		tenant_remap(map, (size_t)left * ACCOUNTING_PAGE);
		if (left % 4 == 0)
			sleep_ms(1);
	}
	munmap(map, CHURN_PAGES * ACCOUNTING_PAGE);
	return unlink(name) ? -errno : 0;
}

static int churn_write(struct churner *me, struct page_totals *totals, const char *cgroup,
		       const char *name)
{
	int error = cgroup_make(cgroup);

	if (!error)
		error = cgroup_enter(cgroup);
	if (error)
		return error;
	atomic_fetch_add(&totals->to_write, CHURN_PAGES);
	error = tenant_write(name, CHURN_PAGES);
	atomic_fetch_add(&totals->written, CHURN_PAGES);
	return error ? error : cgroup_enter(me->place->away);
}

/*
 * Makes one more cgroup with a file that outlives it. Every second file is truncated while
 * the cgroup is dying.
 */
static int churn_once(struct churner *me, struct page_totals *totals, int64_t round,
		      struct prng *prng)
{
	char cgroup[160], name[160];
	char *map;
	int error;

	snprintf(cgroup, sizeof(cgroup), "%s/churn%d.%lld", me->place->parent, me->number,
		 (long long)round);
	churn_name(name, sizeof(name), me, round);
	error = churn_write(me, totals, cgroup, name);
	map = tenant_map(name, CHURN_PAGES * ACCOUNTING_PAGE);
	if (!error)
		error = map == MAP_FAILED ? -errno : cgroup_remove(cgroup, PATIENCE_MS);
	if (error)
		return error;
	if (prng_below(prng, 2))
		return shrink(name, totals, map);
	for (int i = 0; i < 20; i++)
		tenant_remap(map, CHURN_PAGES * ACCOUNTING_PAGE);
	munmap(map, CHURN_PAGES * ACCOUNTING_PAGE);
	return 0;
}

/* Removes a file that is too old, if it still exists. */
static void churn_remove(struct churner *me, struct page_totals *totals, int64_t round)
{
	char name[160];

	if (round < 0)
		return;
	churn_name(name, sizeof(name), me, round);
	if (access(name, F_OK))
		return;
	atomic_fetch_add(&totals->to_remove, CHURN_PAGES);
	unlink(name);
	atomic_fetch_add(&totals->removed, CHURN_PAGES);
}

static int run_churner(struct churner *me, struct page_totals *totals)
{
	struct prng prng = {.state = me->seed};
	int error = 0;
	int64_t i;

	for (i = 0; !me->stop && !error; i++) {
		error = churn_once(me, totals, i, &prng);
		churn_remove(me, totals, i - CHURN_FILES);
		me->rounds = i + 1;
	}
	me->failed = -error;
	me->idle = true;
	/* Its last files stay until the agent has compared the counters. */
	while (me->stop)
		sleep_ms(1);
	for (int64_t last = i - CHURN_FILES; last < i; last++)
		churn_remove(me, totals, last);
	return 0;
}

static int start(struct churner *c, struct page_totals *totals)
{
	pid_t pid;

	c->rounds = c->failed = 0;
	c->stop = c->idle = false;
	/*
	 * c is shared memory: if fork() returned into it, the child would write its 0 there as
	 * well.
	 */
	pid = fork();
	if (!pid)
		_exit(run_churner(c, totals));
	c->pid = pid;
	return pid < 0 ? -errno : 0;
}

int churners_start(struct trial *t, struct churners *c, const struct churn_place *place, int nodes,
		   struct page_totals *totals)
{
	int64_t seed = wl_param_int(t, "seed");

	memset(totals, 0, sizeof(*totals));
	c->nr = (int)wl_param_int(t, "churners");
	for (int i = 0; i < c->nr; i++) {
		struct churner *one = &c->all[i];

		one->place = place;
		one->number = i;
		one->nodes = nodes;
		one->seed = (uint64_t)(seed + i);
		if (start(one, totals))
			return wl_fail(t, "cannot fork: %m");
	}
	return 0;
}

static int wait_until_idle(struct churner *c)
{
	int64_t end = now_ns() + PATIENCE_MS * 1000000LL;

	while (!c->idle) {
		if (now_ns() > end)
			return -ETIMEDOUT;
		sleep_ms(1);
	}
	return -(int)c->failed;
}

int churners_stop(struct trial *t, struct churners *c)
{
	int64_t rounds = 0;

	for (int i = 0; i < c->nr; i++)
		c->all[i].stop = true;
	for (int i = 0; i < c->nr; i++) {
		int error = wait_until_idle(&c->all[i]);

		if (error)
			return wl_fail(t, "churner %d, after %lld cgroups: %s", i,
				       (long long)c->all[i].rounds, strerror(-error));
		rounds += c->all[i].rounds;
	}
	wl_sample(t, "storm_cgroups_count", rounds);
	return 0;
}

int churners_end(struct trial *t, struct churners *c)
{
	for (int i = 0; i < c->nr; i++)
		c->all[i].stop = false;
	for (int i = 0; i < c->nr; i++)
		if (task_reap(c->all[i].pid, PATIENCE_MS))
			return wl_fail(t, "churner %d did not exit successfully", i);
	return 0;
}
