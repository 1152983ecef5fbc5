// SPDX-License-Identifier: GPL-2.0
/*
 * How zombies delay the suspend freezer: it visits every task under tasklist_lock, exited
 * ones too, and repeats that until all are frozen.
 *
 * A parent process makes the zombies and sleeps. Each repetition suspends, as far as
 * freezing or with all devices, and evaluates what the kernel reports meanwhile:
 * tracepoints (ns), or its log (us) if the kernel has no tracepoints. The "elapsed" lines
 * of the log, in whole ms, are the cross-check.
 *
 * Kernel threads must be woken to freeze, so the phase of the remaining tasks has two
 * passes. Between them the freezer sleeps 0.5 to 1 ms, and a timer tick in the second half
 * ends the sleep. So even on the instruction clock single samples are up to 0.5 ms shorter
 * than others. This is a property of the kernel and is not hidden: there are many
 * repetitions, each in another phase of the tick.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/kmsg.h"
#include "lib/phases.h"
#include "lib/suspend.h"
#include "lib/tracepoint.h"
#include "lib/zombie_parent.h"

/*
 * Before each suspend: long enough for what was freed (by RCU, freed stacks) to be gone,
 * and for the parent to sleep. If it still ran it would have to be woken to freeze, and
 * the freezer would sleep.
 */
#define SETTLE_MS 50
/* The kernel cuts its elapsed time to whole ms; another ms is for printing the two lines. */
#define AGREE_NS 2000000

enum { CONSOLE, SUSPEND_RESUME };
static const char *const tracepoints[] = {"printk:console", "power:suspend_resume", NULL};

static struct zombie_parent parent;
static struct tracer tracer;
static bool traced;
static struct tp_field message, action, begin;
static int log_fd;

/*
 * The tracepoint of the thaw; its constant string distinguishes it from the other steps of
 * a suspend.
 */
static void phases_step(struct phases *p, const struct tracer_hit *hit)
{
	static uint64_t known;
	uint64_t address, is_begin;

	if (!tp_number(hit, &action, &address) || !tp_number(hit, &begin, &is_begin))
		return;
	if (address != known && !tp_constant(address, "thaw_processes"))
		return;
	known = address;
	*(is_begin ? &p->thaw.start_ns : &p->thaw.end_ns) = hit->time_ns;
}

/* 0, or the error of the stream. */
static int read_tracepoints(struct phases *p)
{
	struct tracer_hit hit;
	char text[256];
	int status;

	while ((status = tracer_next(&tracer, &hit)) > 0) {
		if (hit.which == SUSPEND_RESUME)
			phases_step(p, &hit);
		else if (tp_text(&hit, &message, text, sizeof(text)))
			phases_freeze(p, hit.time_ns, text);
	}
	return status;
}

static int read_log(struct phases *p)
{
	struct kmsg line;
	int status;

	while ((status = kmsg_next(log_fd, &line)) > 0) {
		phases_elapsed(p, line.text);
		if (traced)
			continue;
		phases_freeze(p, line.time_ns, line.text);
		phases_thaw(p, line.time_ns, line.text);
	}
	return status;
}

static void open_tracepoints(void)
{
	traced = !tracer_open(&tracer, tracepoints);
	if (!traced)
		return;
	if (tp_field(&tracer, CONSOLE, "msg", &message) ||
	    tp_field(&tracer, SUSPEND_RESUME, "action", &action) ||
	    tp_field(&tracer, SUSPEND_RESUME, "start", &begin)) {
		tracer_close(&tracer);
		traced = false;
	}
}

static int setup(struct trial *t)
{
	int64_t zombies = wl_param_int(t, "zombies");
	bool shared = !strcmp(wl_param_str(t, "make"), "shared");

	parent.pid = 0;
	open_tracepoints();
	log_fd = kmsg_open();
	if (log_fd < 0)
		return wl_fail(t, "cannot read /dev/kmsg: %s", strerror(-log_fd));
	if (suspend_prepare(t, wl_param_str(t, "until")) ||
	    zombie_parent_start(t, &parent, zombies, shared, NULL))
		return -1;
	return 0;
}

/* A metric whose phase was not seen is left out; freeze_completed has failed then. */
static void sample(struct trial *t, const char *metric, int64_t ns)
{
	if (ns >= 0)
		wl_sample(t, metric, ns);
}

static bool agree(int64_t measured_ns, int64_t elapsed_ns)
{
	int64_t difference = measured_ns - elapsed_ns;

	return difference >= -AGREE_NS && difference <= AGREE_NS;
}

static int run(struct trial *t)
{
	int64_t call, user, remaining, count, zombies = wl_param_int(t, "zombies");
	int trace_status = 0, log_status;
	struct phases p;

	phases_init(&p);
	wl_settle(t, SETTLE_MS);
	wl_profile_begin(t);
	if (traced)
		tracer_start(&tracer);
	call = suspend_once();
	wl_profile_end(t);
	if (traced) {
		tracer_stop(&tracer);
		trace_status = read_tracepoints(&p);
	}
	log_status = read_log(&p);
	count = zombie_parent_count(&parent);

	user = phase_ns(&p.user);
	remaining = phase_ns(&p.remaining);
	wl_check(t, "freeze_completed", call >= 0 && user >= 0 && remaining >= 0,
		 "suspend: %s; times from %s", call < 0 ? strerror(-call) : "done",
		 trace_status ? "tracepoints, with some lost"
		 : traced     ? "tracepoints"
			      : "the kernel's log, in microseconds");
	wl_check(t, "all_zombies", count == zombies, "%lld", (long long)count);
	wl_check(t, "elapsed_agrees",
		 !log_status && agree(user, p.elapsed_user_ns) &&
			 agree(remaining, p.elapsed_remaining_ns),
		 "user %lld and %lld ns, remaining %lld and %lld ns", (long long)user,
		 (long long)p.elapsed_user_ns, (long long)remaining,
		 (long long)p.elapsed_remaining_ns);
	sample(t, "freeze_user_ns", user);
	sample(t, "freeze_remaining_ns", remaining);
	sample(t, "thaw_ns", phase_ns(&p.thaw));
	sample(t, "suspend_call_ns", call);
	if (call > 0 && user >= 0 && remaining >= 0 && phase_ns(&p.thaw) >= 0)
		wl_sample_ratio(t, "tasks_share", user + remaining + phase_ns(&p.thaw), call);
	sample(t, "elapsed_user_ns", p.elapsed_user_ns);
	sample(t, "elapsed_remaining_ns", p.elapsed_remaining_ns);
	return 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	zombie_parent_stop(&parent);
	suspend_restore();
	if (traced)
		tracer_close(&tracer);
	if (log_fd >= 0)
		close(log_fd);
}

static const char *const params[] = {"zombies", "make", "until", NULL};
static const struct workload zombies_workload = {
	.name = "zombies",
	.summary = "suspend and resume, with many exited children that are not waited for",
	.params = params,
	.stretch = "the suspend call, including the thaw",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(zombies_workload);
