// SPDX-License-Identifier: GPL-2.0
/*
 * What it costs to make many objects of one kind, to have them, and to release them. Idle time
 * is no work, so it is not part of the cost; work that the kernel does later is a cost of its own.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hunt/bystanders.h"
#include "hunt/deferred.h"
#include "hunt/free_memory.h"
#include "hunt/locks.h"
#include "hunt/owners.h"
#include "hunt/residents.h"
#include "hunt/sizes.h"
#include "hunt/switches.h"
#include "hunt/sysctls.h"
#include "hunt/work_items.h"
#include "waits/waits.h"
#include "workload.h"

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
 * is done later, or with the making, as what it covers; what others notice of the release; what
 * tasks wait for during the release and the work that is done later; or how many work items it
 * queues.
 */
static const char *const watches[] = {"cost",  "deferred", "make", "bystanders",
				      "waits", "counts",   NULL};
enum watch { COST, DEFERRED, MAKE, BYSTANDERS, WAITS, COUNTS };

/* Slabs stay after their objects, so memory is compared with the guest before its first objects. */
static int64_t first_free_kb, most_objects;

/* The points of this way of this kind that were measured. */
static const struct kind *sizes_kind;
static enum way sizes_way;
static struct sizes sizes;

static enum idle_source idle_is_from;

/* Of this trial in the plan of the boot, and of its repetition; for the records of waits. */
static int trial_number = -1, repetition;

struct released {
	int64_t elapsed_ns, idle_ns, deferred_ns, made_ns;
	int64_t deferred_elapsed_ns; /* from the end of the release until the last deferred work */
	struct switches before, after;
	int64_t work_items; /* that were queued until the end of the release; -1: not known */
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

static int64_t idle_since(int64_t begin_ns)
{
	int64_t idle = begin_ns < 0 ? 0 : idle_total_ns(idle_is_from) - begin_ns;

	return idle > 0 ? idle : 0;
}

static int release(struct trial *t, const struct taken *quiet, enum watch watch, struct released *r)
{
	int64_t start, from, end, idle = idle_begin_ns(idle_is_from);
	struct taken later;

	/* What others notice, they notice of a release without priority. */
	if (watch != BYSTANDERS && owners_prioritize(t))
		return -1;
	if (watch != MAKE && watch != WAITS)
		wl_profile_begin(t);
	if (watch == BYSTANDERS)
		bystanders_from();
	locks_begin();
	r->before = switches_now();
	if (watch == WAITS)
		waits_start();
	if (watch == COUNTS)
		work_items_start();
	start = now_ns();
	if (owners_release(t))
		return -1;
	end = now_ns();
	owners_times(&start, &end);
	if (watch != DEFERRED)
		wl_profile_end(t);
	r->idle_ns = idle_since(idle);
	r->elapsed_ns = end - start;
	if (watch == COUNTS)
		r->work_items = work_items_end();
	r->after = switches_now();
	if (watch == BYSTANDERS) {
		sleep_ms(WATCHED_MS);
		return 0;
	}
	locks_end(t, "locks_release");
	locks_begin();
	/* Others run as soon as this process has no priority. */
	from = now_ns();
	if (owners_leave_priority(t))
		return -1;
	later = let_others_run(from, DEFERRED_LIMIT_NS);
	wl_profile_end(t);
	if (watch == WAITS)
		waits_stop();
	locks_end(t, "locks_deferred");
	r->deferred_ns = taken_beyond(quiet, &later);
	r->deferred_elapsed_ns = later.worked_ns;
	r->quiet = later.quiet;
	return 0;
}

static int64_t without(int64_t elapsed_ns, int64_t idle_ns)
{
	return elapsed_ns > idle_ns ? elapsed_ns - idle_ns : 0;
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
	r->made_ns = without(owners_sums().longest_made_ns, several_cpus() ? 0 : idle);
	return 0;
}

static void report_switches(struct trial *t, const struct released *r)
{
	wl_sample(t, "waits_count", owners_sums().waits);
	wl_sample(t, "switches_count", r->after.switches - r->before.switches);
	/* One CPU has no other to interrupt. */
	if (several_cpus() && r->before.calls >= 0 && r->before.flushes >= 0) {
		wl_sample(t, "calls_count", r->after.calls - r->before.calls);
		wl_sample(t, "flushes_count", r->after.flushes - r->before.flushes);
	}
}

static void report(struct trial *t, const struct released *r, int64_t held_kb, enum watch watch)
{
	int64_t left = owners_sums().left;

	wl_check(t, "released", left == 0, "%lld objects are left", (long long)left);
	if (watch == BYSTANDERS)
		return;
	wl_sample(t, "elapsed_ns", r->elapsed_ns);
	wl_sample(t, "idle_ns", r->idle_ns);
	wl_sample(t, "make_ns", r->made_ns);
	report_switches(t, r);
	if (watch == COUNTS && r->work_items >= 0)
		wl_sample(t, "work_items_count", r->work_items);
	/* With several CPUs, what is idle beside the release is not waiting. */
	if (!several_cpus()) {
		wl_sample(t, "sync_ns", without(r->elapsed_ns, r->idle_ns));
		wl_sample(t, "deferred_ns", r->deferred_ns);
		wl_sample(t, "deferred_elapsed_ns", r->deferred_elapsed_ns);
		wl_sample(t, "unsettled_count", !r->quiet);
	}
	if (held_kb >= 0)
		wl_sample(t, "held_kb", held_kb);
}

static int watch_waits(struct trial *t)
{
	int error = waits_open();

	return error ? wl_fail(t,
			       "cannot watch what tasks wait for: %s; it needs Linux 6.0 or later "
			       "with PERF_EVENTS and KALLSYMS",
			       strerror(-error))
		     : 0;
}

static int report_waits(struct trial *t)
{
	int error = waits_report(trial_number, repetition);

	return error ? wl_fail(t, "cannot read what tasks waited for: %s", strerror(-error)) : 0;
}

/* What the guest has beside the objects; a trial with residents says nothing about memory. */
static int make_room(struct trial *t, const struct owner_spec *spec, enum watch watch)
{
	int64_t free_before_kb;

	if (residents_make(t, wl_param_str(t, "stay"), spec->user))
		return -1;
	let_others_run(now_ns(), QUIET_LIMIT_NS);
	free_before_kb = free_memory_kb();
	if (!first_free_kb)
		first_free_kb = free_before_kb;
	if (watch == BYSTANDERS && bystanders_open())
		first_free_kb -= free_before_kb - free_memory_kb();
	return watch == WAITS ? watch_waits(t) : 0;
}

static int measure(struct trial *t, const struct owner_spec *spec, enum watch watch)
{
	bool timers, with_residents;
	struct lateness late = {0};
	struct released r = {0};
	int64_t held_kb = -1;
	struct taken quiet;

	if (make_room(t, spec, watch))
		return -1;
	timers = residents_have_timers() ||
		 (spec->kind->timers && spec->objects * wl_param_int(t, "owners") > FEW_TIMERS);
	with_residents = spec->residents || residents_are_there();
	idle_is_from = idle_source(timers);
	/* What a kind waits for while it prepares is no part of making. */
	if (owners_start(t, spec, wl_param_int(t, "owners")) || make(t, watch, &r))
		return -1;
	if (spec->objects >= most_objects && !with_residents)
		held_kb = first_free_kb - free_memory_kb();
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
	if (watch == WAITS)
		return report_waits(t);
	if (watch == BYSTANDERS) {
		wl_sample(t, "objects_count", spec->objects);
		wl_sample(t, "probe_ns", late.probe_ns);
		wl_sample(t, "realtime_ns", late.realtime_ns);
		if (late.irqs_off_ns >= 0)
			wl_sample(t, "irqs_off_ns", late.irqs_off_ns);
		return 0;
	}
	if (!with_residents)
		sizes_add(&sizes, spec->objects,
			  &(struct size_cost){
				  .cost_ns = without(r.elapsed_ns, r.idle_ns) + r.deferred_ns +
					     r.made_ns,
				  .elapsed_ns = r.elapsed_ns,
				  .held_kb = held_kb > 0 ? held_kb : 0,
			  });
	return 0;
}

static int setup(struct trial *t)
{
	trial_number++;
	repetition = -1;
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
	const char *stay = wl_param_str(t, "stay");
	int status;

	repetition++;
	if (wl_param_int(t, "owners") > OWNERS_MOST)
		return wl_fail(t, "there are at most %d owners", OWNERS_MOST);
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
	spec.residents = residents_declared(stay);
	if (spec.residents && !spec.kind->stay)
		return wl_fail(t, "the kind %s declares no residents", spec.kind->name);
	/* As many as the largest point before this one that was within the budget. */
	if (!spec.objects && !strcmp(stay, "-"))
		spec.objects = sizes.largest.objects;
	else if (sizes_needless(&sizes, spec.objects, &limits)) {
		wl_sample(t, "needless_count", 1);
		return 0;
	}
	if (!spec.objects && !strcmp(stay, "-"))
		return wl_fail(t, "no point before this one was measured");
	if (sizes_beyond(&sizes, spec.objects, &limits)) {
		wl_sample(t, "beyond_budget_count", 1);
		return 0;
	}
	spec.seed = now_ns();
	status = measure(t, &spec, wl_param_choice(t, "watch", watches));
	waits_close();
	/* A release that failed has left it. */
	if (status)
		owners_leave_priority(t);
	owners_clean();
	return status;
}

static const char *const params[] = {"kind",  "way",	"objects", "owners", "user",
				     "watch", "budget", "stay",	   NULL};
static const struct workload hunt = {
	.name = "hunt",
	.summary = "make many objects of one kind and release them",
	.params = params,
	.stretch = "the release, without what is done later",
	.setup = setup,
	.run = run,
};
WORKLOAD(hunt);
