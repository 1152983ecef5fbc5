// SPDX-License-Identifier: GPL-2.0
/*
 * Does CPU bandwidth control do what it should, whatever happens to throttled tasks? First
 * the usage of quotas is measured, then one event after the other happens, then all at
 * once.
 *
 * The checks are about what a kernel promises, not about how it does it: it may throttle
 * run queues or tasks.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "lib/cgroup.h"
#include "lib/kmsg.h"
#include "storm.h"
#include "victims.h"
#include "workload.h"

#define TOP CGROUP_ROOT "throttle_stress"
#define HUNG_S 60 /* a task that waits for a lock of a throttled task waits long as well */
#define PERIOD_US 100000
#define MOST_PERMILLE 1050
/*
 * Measure for as long again, at most this many times, until the usage is right: later
 * periods compensate a late timer.
 */
#define MAX_STRETCHES 5

/* The expected usage of each cgroup: in each period its quota, on all CPUs together. */
static struct usage {
	const char *cgroup;
	const char *runs_in; /* the cgroup of its victims; NULL: those of the cgroup below count */
	enum victim_work work;
	int victims, quota_us;
	int64_t usage_us, periods, throttled, throttled_us;
} usages[] = {
	{TOP "/spinning", TOP "/spinning", VICTIM_SPIN, 2, 20000, 0, 0, 0, 0},
	{TOP "/listing", TOP "/listing", VICTIM_LIST, 3, 20000, 0, 0, 0, 0},
	{TOP "/crowd", TOP "/crowd", VICTIM_SPIN, 24, 20000, 0, 0, 0, 0},
	{TOP "/mapping", TOP "/mapping", VICTIM_MAP, 2, 15000, 0, 0, 0, 0},
	/*
	 * The inner quota is less than what is left of the outer one on any CPU, wherever tasks
	 * run.
	 */
	{TOP "/nested", NULL, VICTIM_LIST, 0, 20000, 0, 0, 0, 0},
	{TOP "/nested/less", TOP "/nested/less", VICTIM_LIST, 2, 3000, 0, 0, 0, 0},
};

static int log_fd = -1, round_nr;
static bool stuck, hotplug;

/* All values from one reading of the file. */
static void read_usage(struct usage *u)
{
	char file[128], text[4096];

	snprintf(file, sizeof(file), "%s/cpu.stat", u->cgroup);
	if (read_file(file, text, sizeof(text)) < 0)
		text[0] = '\0';
	u->usage_us = cgroup_value_in(text, "usage_usec");
	u->periods = cgroup_value_in(text, "nr_periods");
	u->throttled = cgroup_value_in(text, "nr_throttled");
	u->throttled_us = cgroup_value_in(text, "throttled_usec");
}

static int start_usages(struct trial *t)
{
	int place = 0;

	for (size_t i = 0; i < ARRAY_SIZE(usages); i++) {
		char quota[32];

		snprintf(quota, sizeof(quota), "%d %d", usages[i].quota_us, PERIOD_US);
		if (cgroup_make(usages[i].cgroup) || quota_set(usages[i].cgroup, quota))
			return wl_fail(t, "cannot make %s", usages[i].cgroup);
		if (!usages[i].runs_in &&
		    (quota_allow_below(TOP "/nested") || cgroup_make(TOP "/nested/more")))
			return wl_fail(t, "cannot make the nested cgroups");
		for (int v = 0; v < usages[i].victims; v++)
			if (victim_put(place++, usages[i].work, usages[i].runs_in))
				return wl_fail(t, "cannot start a victim in %s", usages[i].runs_in);
	}
	for (int v = 0; v < 2; v++)
		if (victim_put(place++, v ? VICTIM_SPIN : VICTIM_LIST, TOP "/nested/more"))
			return wl_fail(t, "cannot start a victim in the nested cgroups");
	return 0;
}

/* Usage divided by quota, in thousandths, since the values in from. */
static int64_t permille(const struct usage *now, const struct usage *from, int64_t us)
{
	return (now->usage_us - from->usage_us) * 1000 / (us * now->quota_us / PERIOD_US);
}

static bool all_within(int64_t least, const struct usage *now, const struct usage *from, int64_t us)
{
	for (size_t i = 0; i < ARRAY_SIZE(usages); i++)
		if (permille(&now[i], &from[i], us) < least ||
		    permille(&now[i], &from[i], us) > MOST_PERMILLE)
			return false;
	return true;
}

static void check_usages(struct trial *t, const struct usage *from, int64_t us)
{
	int64_t cpus = sysconf(_SC_NPROCESSORS_ONLN), least = wl_param_int(t, "least_permille");

	for (size_t i = 0; i < ARRAY_SIZE(usages); i++) {
		const struct usage *u = &usages[i];
		int64_t used = permille(u, &from[i], us), periods = u->periods - from[i].periods;
		int64_t throttled = u->throttled - from[i].throttled;
		int64_t waited = u->throttled_us - from[i].throttled_us;

		wl_sample(t, "usage_permille_count", used);
		wl_check(t, "quota_used", used >= least, "%s: %lld/1000", u->cgroup,
			 (long long)used);
		wl_check(t, "quota_kept", used <= MOST_PERMILLE, "%s: %lld/1000", u->cgroup,
			 (long long)used);
		wl_check(t, "periods_counted",
			 throttled <= periods && throttled >= periods / 2 &&
				 periods <= us / PERIOD_US + 2 && periods >= us / PERIOD_US / 2,
			 "%s: %lld of %lld periods in %lld us", u->cgroup, (long long)throttled,
			 (long long)periods, (long long)us);
		wl_check(t, "wait_counted", waited >= us / 4 && waited <= cpus * us * 11 / 10,
			 "%s: %lld of %lld us", u->cgroup, (long long)waited, (long long)us);
	}
}

/* The first periods are left out: the tasks are just starting. */
static int measure_usages(struct trial *t)
{
	struct usage from[ARRAY_SIZE(usages)];
	int64_t stretch_ms = wl_param_int(t, "periods") * PERIOD_US / 1000, start, us = 0;
	int64_t least = wl_param_int(t, "least_permille");

	if (start_usages(t))
		return -1;
	sleep_ms(5 * PERIOD_US / 1000);
	start = now_ns();
	for (size_t i = 0; i < ARRAY_SIZE(usages); i++)
		read_usage(&usages[i]);
	memcpy(from, usages, sizeof(from));
	for (int i = 0; i < MAX_STRETCHES && (!us || !all_within(least, usages, from, us)); i++) {
		wl_alive(t, "usage, stretch %d", i);
		sleep_ms(stretch_ms);
		us = (now_ns() - start) / 1000;
		for (size_t u = 0; u < ARRAY_SIZE(usages); u++)
			read_usage(&usages[u]);
	}
	check_usages(t, from, us);
	return 0;
}

static bool end_victims(struct trial *t, bool kill_them, const char *of)
{
	bool gone = victims_end(kill_them);

	stuck = stuck || !gone;
	return wl_check(t, "all_gone", gone, "%s: not all %s%s", of,
			kill_them ? "exit" : "exit successfully", gone ? "" : victims_left());
}

static void remove_usages(struct trial *t)
{
	int error = 0;

	for (size_t i = 0; i < ARRAY_SIZE(usages); i++) {
		int failed = cgroup_remove_tree(usages[i].cgroup, QUOTA_PATIENCE_MS);

		error = error ? error : failed;
	}
	wl_check(t, "removed", !error, "after measuring usage: %s", strerror(-error));
}

static bool wanted(struct trial *t, const char *part)
{
	const char *only = wl_param_str(t, "only");

	return !stuck && (!strcmp(only, "all") || !strcmp(only, part));
}

static void run_cases(struct trial *t)
{
	for (const struct throttle_case *c = throttle_cases; c->invariant; c++) {
		const char *wrong;

		if (!wanted(t, "cases") && !wanted(t, c->invariant))
			continue;
		wl_alive(t, "%s", c->invariant);
		wrong = c->run();
		wl_check(t, c->invariant, !wrong, "%s", wrong ? wrong : "");
		end_victims(t, true, c->invariant);
	}
}

/*
 * Rounds end in turn with all quotas removed and every task running, and with all tasks
 * killed as they are. If hotplug is on, a CPU goes offline and online in the first and the
 * last of four rounds, so that both endings occur with and without it.
 */
static int one_storm(struct trial *t)
{
	uint64_t seed = (uint64_t)wl_param_int(t, "seed") + round_nr;
	const char *wrong;
	int error;

	wl_alive(t, "storm %d", round_nr);
	error = storm_setup(TOP);
	if (error)
		return wl_fail(t, "cannot make the cgroups of the storm: %s", strerror(-error));
	wrong = storm_run(t, wl_param_int(t, "victims"), wl_param_int(t, "storm_ms"), seed,
			  hotplug && (round_nr + round_nr / 2) % 2 == 0);
	wl_check(t, "storm_ends", !wrong, "round %d: %s", round_nr, wrong ? wrong : "");
	if (round_nr % 2 == 0) {
		error = storm_lift();
		wrong = error ? strerror(-error) : victims_stuck();
		wl_check(t, "no_task_throttled", !wrong, "round %d: %s", round_nr,
			 wrong ? wrong : "");
	}
	if (!end_victims(t, round_nr % 2, "the storm"))
		return -1;
	error = cgroup_remove_tree(TOP "/storm", QUOTA_PATIENCE_MS);
	wl_check(t, "removed", !error && !victims_shared->not_removed, "round %d: %s, %d before",
		 round_nr, strerror(-error), victims_shared->not_removed);
	round_nr++;
	return 0;
}

static void check_log(struct trial *t)
{
	struct kmsg m;
	int got = kmsg_problem(log_fd, &m);

	wl_check(t, "log_clean", !got, "%s", got > 0 ? m.text : strerror(-got));
}

static int run(struct trial *t)
{
	int64_t rounds = wanted(t, "storm") ? wl_param_int(t, "rounds") : 0;
	int error = 0;

	if (wanted(t, "usage")) {
		error = measure_usages(t);
		if (!error && end_victims(t, true, "usage"))
			remove_usages(t);
	}
	if (!error)
		run_cases(t);
	for (; rounds && !error && !stuck; rounds--)
		error = one_storm(t);
	check_log(t);
	return stuck ? wl_fail(t, "not all are gone") : error;
}

static int setup(struct trial *t)
{
	int error = victims_setup();

	stuck = false;
	hotplug = !strcmp(wl_param_str(t, "plug"), "on");
	round_nr = 0;
	if (error)
		return wl_fail(t, "cannot prepare the guest: %s", strerror(-error));
	log_fd = kmsg_open();
	if (log_fd < 0)
		return wl_fail(t, "cannot read /dev/kmsg: %s", strerror(-log_fd));
	write_file("/proc/sys/kernel/hung_task_timeout_secs", "%d", HUNG_S);
	error = quota_allow_below(CGROUP_ROOT);
	if (!error)
		error = cgroup_make(TOP);
	if (!error)
		error = quota_allow_below(TOP);
	if (!error)
		error = cases_setup(TOP);
	return error ? wl_fail(t, "cannot make %s: %s; the kernel needs CFS_BANDWIDTH", TOP,
			       strerror(-error))
		     : 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	storm_drop();
	if (!stuck) {
		kill_and_reap_all(0);
		cgroup_remove_tree(TOP, QUOTA_PATIENCE_MS);
		write_file(CGROUP_ROOT "cgroup.subtree_control", "-cpu");
	}
	victims_cleanup();
	if (log_fd >= 0)
		close(log_fd);
	log_fd = -1;
}

static const char *const params[] = {"only",	 "periods", "least_permille", "victims", "rounds",
				     "storm_ms", "seed",    "plug",	      NULL};
static const struct workload throttle_stress = {
	.name = "throttle_stress",
	.summary = "tasks out of CPU quota in everything that can happen to them",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(throttle_stress);
