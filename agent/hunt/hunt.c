// SPDX-License-Identifier: GPL-2.0
/*
 * What it costs to make many objects of one kind, to have them, and to release them. Idle time
 * is no work, so it is not part of the cost; work that the kernel does later is a cost of its own.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hunt/bystanders.h"
#include "hunt/deferred.h"
#include "hunt/locks.h"
#include "hunt/owner.h"
#include "hunt/sizes.h"
#include "hunt/sysctls.h"
#include "workload.h"

#define FOLDER "/tmp/hunt"
#define MAX_OWNERS 64
#define FEW_TIMERS 1000
/* Longer than this without a record is a hang to the lab; a release that waits gives none. */
#define LONGEST_NS 15000000000
#define QUIET_LIMIT_NS 3000000000
/* How long after the release bystanders are watched: RCU callbacks begin within that time. */
#define WATCHED_MS 20
/* Several times a grace period of RCU. */
#define SEVERAL_CPUS_US 100000
/* Deferred work may take as long as what was measured, and longer. */
#define DEFERRED_LIMIT_NS 20000000000

static const char *const users[] = {"root", "ordinary", NULL};
/*
 * What is watched: the cost, with the release as what a profile covers; the same with the work that
 * is done later, or with the making, as what it covers; or what others notice of the release.
 */
static const char *const watches[] = {"cost", "deferred", "make", "bystanders", NULL};
enum watch { COST, DEFERRED, MAKE, BYSTANDERS };

static struct owner owners[MAX_OWNERS];
static int nr_owners;

/* Slabs stay after their objects, so memory is compared with the guest before its first objects. */
static int64_t first_free_kb, most_objects;

/* The points of this way of this kind that were measured. */
static const struct kind *sizes_kind;
static enum way sizes_way;
static struct sizes sizes;

static enum idle_source idle_is_from;

struct released {
	int64_t elapsed_ns, idle_ns, deferred_ns, made_ns;
	bool quiet;
};

static bool several_cpus(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

/*
 * Waits until the kernel has done what is left to be done. Only with one CPU can the time that it
 * takes be known: with several CPUs it may run on another one, and in real time each interruption
 * by the host looks like it.
 */
static struct taken let_others_run(int64_t begin, int64_t limit_ns)
{
	if (!several_cpus())
		return take_until_quiet(begin, limit_ns);
	usleep(SEVERAL_CPUS_US);
	return (struct taken){.quiet = true};
}

/* Free memory, with the pages in the lists of each CPU, which the kernel does not count as free. */
static int64_t free_kb(void)
{
	FILE *f = fopen("/proc/zoneinfo", "re");
	int64_t page_kb = sysconf(_SC_PAGESIZE) / 1024;
	long long pages, kb = 0;
	struct sysinfo info;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %lld", &pages) == 1)
			kb += pages * page_kb;
	if (f)
		fclose(f);
	sysinfo(&info);
	return kb + (int64_t)info.freeram * info.mem_unit / 1024;
}

static int owner_error(struct trial *t, const struct owner *o)
{
	if (o->report->call[0])
		return wl_fail(t, "%.100s: %s", o->report->call, strerror(o->report->error));
	return wl_fail(t, "the owner of the objects was killed");
}

/* Does nothing with a kernel that does not count how long locks are held. */
static void locks_begin(void)
{
	put_file(LOCKSTAT_FILE, "0");
}

/* The locks that were held since locks_begin(); an invariant, which always holds, has their text.
 */
static void locks_end(struct trial *t, const char *invariant)
{
	struct lock_line locks[LOCKS_MOST];
	FILE *file = fopen(LOCKSTAT_FILE, "re");
	char text[LOCKS_TEXT];

	if (!file)
		return;
	locks_text(locks, locks_read(file, locks), text, sizeof(text));
	wl_check(t, invariant, true, "%s", text);
}

static int start_owners(struct trial *t, const struct owner_spec *spec, int count)
{
	char folder[64];
	int i;

	if ((mkdir(FOLDER, 0777) && errno != EEXIST) ||
	    mount("hunt", FOLDER, "tmpfs", 0, "mode=777,nr_inodes=0"))
		return wl_fail(t, "tmpfs on " FOLDER ": %m");
	for (i = 0; i < count; i++) {
		struct owner_spec one = *spec;

		snprintf(folder, sizeof(folder), FOLDER "/%d", i);
		if (mkdir(folder, 0777) || chmod(folder, 0777))
			return wl_fail(t, "%s: %m", folder);
		one.folder = folder;
		one.cpu = count > 1 ? i % (int)sysconf(_SC_NPROCESSORS_ONLN) : -1;
		nr_owners++;
		if (!owner_start(&owners[i], &one))
			return owner_error(t, &owners[i]);
	}
	return 0;
}

static int owners_make(struct trial *t)
{
	int64_t made = 0;
	int i;

	for (i = 0; i < nr_owners; i++) {
		if (!owner_make(&owners[i]))
			return owner_error(t, &owners[i]);
		made += owners[i].spec.objects;
		wl_alive(t, "%lld made", (long long)made);
	}
	return 0;
}

static int64_t idle_since(int64_t begin_ns)
{
	int64_t idle = begin_ns < 0 ? 0 : idle_total_ns(idle_is_from) - begin_ns;

	return idle > 0 ? idle : 0;
}

static int set_priority(struct trial *t, pid_t pid, int priority)
{
	struct sched_param param = {.sched_priority = priority};

	if (sched_setscheduler(pid, priority ? SCHED_FIFO | SCHED_RESET_ON_FORK : SCHED_OTHER,
			       &param))
		return wl_fail(t, "real-time priority %d: %m", priority);
	return 0;
}

/*
 * Real-time tasks leave no CPU time to work items and kernel threads, unless they wait for them:
 * otherwise the scheduler would decide which part of that work is deferred. The owners precede
 * this process, since an exit goes on when it has notified the parent.
 */
static int prioritize(struct trial *t)
{
	int i, status = set_priority(t, 0, 1);

	for (i = 0; i < nr_owners && !status; i++)
		status = set_priority(t, owners[i].pid, 2);
	return status;
}

static int release(struct trial *t, const struct taken *quiet, enum watch watch, struct released *r)
{
	bool by_exit = owners[0].spec.way == WAY_EXIT;
	int64_t start, from, end = 0, idle = idle_begin_ns(idle_is_from);
	struct taken later;
	int i;

	/* What others notice, they notice of a release without priority. */
	if (watch != BYSTANDERS && prioritize(t))
		return -1;
	if (watch != MAKE)
		wl_profile_begin(t);
	if (watch == BYSTANDERS)
		bystanders_from();
	locks_begin();
	start = now_ns();
	for (i = 0; i < nr_owners; i++)
		owner_release(&owners[i]);
	for (i = 0; i < nr_owners; i++)
		if (!owner_released(&owners[i]))
			return owner_error(t, &owners[i]);
	if (by_exit)
		end = now_ns();
	else
		start = INT64_MAX;
	for (i = 0; i < nr_owners && !by_exit; i++) {
		const struct owner_report *o = owners[i].report;

		start = o->start_ns < start ? o->start_ns : start;
		end = o->end_ns > end ? o->end_ns : end;
	}
	if (watch != DEFERRED)
		wl_profile_end(t);
	r->idle_ns = idle_since(idle);
	r->elapsed_ns = end - start;
	if (watch == BYSTANDERS) {
		sleep_ms(WATCHED_MS);
		return 0;
	}
	locks_end(t, "locks_release");
	locks_begin();
	/* Others run as soon as this process has no priority. */
	from = now_ns();
	if (set_priority(t, 0, 0))
		return -1;
	later = let_others_run(from, DEFERRED_LIMIT_NS);
	wl_profile_end(t);
	locks_end(t, "locks_deferred");
	r->deferred_ns = taken_beyond(quiet, &later);
	r->quiet = later.quiet;
	return 0;
}

/* Whatever the owners left: only the agent itself goes on. */
static void clean(void)
{
	int i;

	for (i = 0; i < nr_owners; i++)
		owner_end(&owners[i]);
	nr_owners = 0;
	kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	umount2(FOLDER, MNT_DETACH);
}

static int64_t without(int64_t elapsed_ns, int64_t idle_ns)
{
	return elapsed_ns > idle_ns ? elapsed_ns - idle_ns : 0;
}

/* How long the owner took to make its objects that took longest. */
static int64_t making_ns(void)
{
	int64_t longest = 0;
	int i;

	for (i = 0; i < nr_owners; i++)
		if (owners[i].report->made_ns > longest)
			longest = owners[i].report->made_ns;
	return longest;
}

static int make(struct trial *t, enum watch watch, struct released *r)
{
	int64_t idle = idle_begin_ns(idle_is_from);

	if (watch == MAKE)
		wl_profile_begin(t);
	locks_begin();
	if (owners_make(t))
		return -1;
	if (watch == MAKE)
		wl_profile_end(t);
	locks_end(t, "locks_making");
	idle = idle_since(idle);
	/* With several CPUs, what is idle beside the owner is not waiting. */
	r->made_ns = without(making_ns(), several_cpus() ? 0 : idle);
	return 0;
}

static void report(struct trial *t, const struct released *r, int64_t held_kb, enum watch watch)
{
	int64_t left = 0;
	int i;

	for (i = 0; i < nr_owners; i++)
		left += owners[i].report->left;
	wl_check(t, "released", left == 0, "%lld objects are left", (long long)left);
	if (watch == BYSTANDERS)
		return;
	wl_sample(t, "elapsed_ns", r->elapsed_ns);
	wl_sample(t, "idle_ns", r->idle_ns);
	wl_sample(t, "make_ns", r->made_ns);
	/* With several CPUs, what is idle beside the release is not waiting. */
	if (!several_cpus()) {
		wl_sample(t, "sync_ns", without(r->elapsed_ns, r->idle_ns));
		wl_sample(t, "deferred_ns", r->deferred_ns);
		wl_sample(t, "unsettled_count", !r->quiet);
	}
	if (held_kb >= 0)
		wl_sample(t, "held_kb", held_kb);
}

static int measure(struct trial *t, const struct owner_spec *spec, enum watch watch)
{
	int64_t held_kb = -1, free_before_kb;
	struct lateness late = {0};
	struct released r = {0};
	struct taken quiet;

	let_others_run(now_ns(), QUIET_LIMIT_NS);
	free_before_kb = free_kb();
	if (!first_free_kb)
		first_free_kb = free_before_kb;
	if (watch == BYSTANDERS && bystanders_open())
		first_free_kb -= free_before_kb - free_kb();
	idle_is_from = idle_source(spec->kind->timers &&
				   spec->objects * wl_param_int(t, "owners") > FEW_TIMERS);
	/* What a kind waits for while it prepares is no part of making. */
	if (start_owners(t, spec, wl_param_int(t, "owners")) || make(t, watch, &r))
		return -1;
	if (spec->objects >= most_objects)
		held_kb = first_free_kb - free_kb();
	most_objects = spec->objects > most_objects ? spec->objects : most_objects;
	quiet = let_others_run(now_ns(), QUIET_LIMIT_NS);
	/* Once more if this stretch has what making left to be done. */
	if (quiet.worked)
		quiet = let_others_run(now_ns(), QUIET_LIMIT_NS);
	if (watch == BYSTANDERS && bystanders_start(t))
		return -1;
	wl_settle(t, 1);
	if (release(t, &quiet, watch, &r))
		return -1;
	if (watch == BYSTANDERS)
		bystanders_stop(&late);
	report(t, &r, held_kb, watch);
	if (watch == BYSTANDERS) {
		wl_sample(t, "objects_count", spec->objects);
		wl_sample(t, "probe_ns", late.probe_ns);
		wl_sample(t, "realtime_ns", late.realtime_ns);
		if (late.irqs_off_ns >= 0)
			wl_sample(t, "irqs_off_ns", late.irqs_off_ns);
		return 0;
	}
	sizes_add(&sizes, spec->objects,
		  &(struct size_cost){
			  .cost_ns = without(r.elapsed_ns, r.idle_ns) + r.deferred_ns + r.made_ns,
			  .elapsed_ns = r.elapsed_ns,
			  .held_kb = held_kb > 0 ? held_kb : 0,
		  });
	return 0;
}

static int setup(struct trial *t)
{
	if (wl_param_choice(t, "user", users) == 0)
		raise_sysctls();
	/* By default real-time tasks get 95% of each second. */
	put_file("/proc/sys/kernel/sched_rt_runtime_us", "-1");
	return 0;
}

static int run(struct trial *t)
{
	struct owner_spec spec = {
		.kind = kind_named(wl_param_str(t, "kind")),
		.way = wl_param_choice(t, "way", way_names),
		.objects = wl_param_int(t, "objects"),
		.user = wl_param_choice(t, "user", users) == 1,
		.cpu = -1,
	};
	struct size_limits limits = {
		.budget_ns = wl_param_int(t, "budget") * 1000000,
		.longest_ns = LONGEST_NS,
		.memory_kb = first_free_kb,
	};
	int status;

	if (wl_param_int(t, "owners") > MAX_OWNERS)
		return wl_fail(t, "there are at most %d owners", MAX_OWNERS);
	if (!spec.kind || !kind_has_way(spec.kind, spec.way))
		return wl_fail(t, "there is no kind %s that is released by %s",
			       wl_param_str(t, "kind"), way_names[spec.way]);
	if (sizes_kind != spec.kind || sizes_way != spec.way)
		sizes = (struct sizes){0};
	/* Another kind begins with the memory that the one before it left free. */
	if (sizes_kind != spec.kind)
		first_free_kb = most_objects = 0;
	sizes_kind = spec.kind;
	sizes_way = spec.way;
	/* As many as the largest point before this one that was within the budget. */
	if (!spec.objects)
		spec.objects = sizes.largest.objects;
	else if (sizes_needless(&sizes, spec.objects, &limits)) {
		wl_sample(t, "needless_count", 1);
		return 0;
	}
	if (!spec.objects)
		return wl_fail(t, "no point before this one was measured");
	if (sizes_beyond(&sizes, spec.objects, &limits)) {
		wl_sample(t, "beyond_budget_count", 1);
		return 0;
	}
	spec.seed = now_ns();
	status = measure(t, &spec, wl_param_choice(t, "watch", watches));
	/* A release that failed has left it. */
	if (status)
		set_priority(t, 0, 0);
	clean();
	return status;
}

static const char *const params[] = {"kind", "way",   "objects", "owners",
				     "user", "watch", "budget",	 NULL};
static const struct workload hunt = {
	.name = "hunt",
	.summary = "make many objects of one kind and release them",
	.params = params,
	.stretch = "the release, without what is done later",
	.setup = setup,
	.run = run,
};
WORKLOAD(hunt);
