// SPDX-License-Identifier: GPL-2.0
/*
 * Tasks in every state that the freezer meets, a suspend, and the proof that it was
 * correct: no task ran between the end of freezing and the beginning of thawing, and
 * afterwards every task is in its state from before and continues.
 *
 * The suspend waits for window_s seconds with all tasks frozen (pm_test_delay). Timers
 * expire meanwhile, so a task that is not frozen runs.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/kmsg.h"
#include "lib/phases.h"
#include "lib/suspend.h"
#include "lib/tasks.h"
#include "lib/tracepoint.h"
#include "workers.h"
#include "workload.h"

#define LIMIT_MS 10000 /* what has not happened by then never will */
#define LAST_MS 2000 /* for killed tasks to be gone */
#define LOCKED_MS 5000 /* a suspend that gives up sooner did not try to freeze */
#define TRIES 100
#define ALIVE 3 /* notes that prove that a worker continues */
#define MAX_WORKERS 257 /* 16 copies of 16 kinds, and worker_continued */
#define MAX_ZOMBIES 10000

struct worker {
	const struct worker_kind *kind;
	struct activity *activities;
	pid_t pid;
	char state; /* the state before the suspend, if it must not change; otherwise 0 */
	uint64_t seen[WORKER_TASKS];
};

struct shared {
	struct orders orders;
	struct activity activities[MAX_WORKERS][WORKER_TASKS];
};

static struct shared *shared;
static struct worker workers[MAX_WORKERS];
static pid_t zombies[MAX_ZOMBIES], killed_child;
static int nr_workers, nr_zombies, log_fd = -1;
static struct tracer tracer;
static struct tp_field action, begin;

/* -- waiting for workers -- */

static bool has_moved(const struct worker *w)
{
	for (int i = 0; i < w->kind->activities; i++)
		if (w->activities[i].notes < w->seen[i] + ALIVE)
			return false;
	return true;
}

static void remember_notes(void)
{
	for (struct worker *w = workers; w < workers + nr_workers; w++)
		for (int i = 0; i < w->kind->activities; i++)
			w->seen[i] = w->activities[i].notes;
}

/* The first worker that does not continue within the limit; NULL if all do. */
static const struct worker *wait_for_all(bool held_too)
{
	int64_t end = now_ns() + LIMIT_MS * 1000000LL;

	for (struct worker *w = workers; w < workers + nr_workers; w++)
		while ((held_too || !w->state) && !has_moved(w)) {
			if (now_ns() > end)
				return w;
			sleep_ms(1);
		}
	return NULL;
}

/* -- one repetition, step by step -- */

static pid_t fork_zombie(int code)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(code);
	return pid;
}

/* A child that a timer kills while everything is frozen. */
static pid_t fork_killed_child(int64_t after_ms)
{
	pid_t pid = fork();

	if (pid == 0) {
		signal_after(SIGKILL, after_ms, 0);
		for (;;)
			pause();
	}
	return pid;
}

static struct worker *add_worker(struct trial *t, const struct worker_kind *kind)
{
	struct worker *w = &workers[nr_workers];

	*w = (struct worker){.kind = kind, .activities = shared->activities[nr_workers]};
	w->pid = worker_start(kind, w->activities);
	if (w->pid < 0) {
		wl_fail(t, "cannot fork: %m");
		return NULL;
	}
	nr_workers++;
	return w;
}

static int start_all(struct trial *t)
{
	int64_t copies = wl_param_int(t, "copies"), n = wl_param_int(t, "zombies");

	memset(shared, 0, sizeof(*shared));
	nr_workers = nr_zombies = 0;
	for (int copy = 0; copy < copies; copy++)
		for (const struct worker_kind *k = worker_kinds; k->name; k++)
			if (!add_worker(t, k))
				return -1;
	for (; nr_zombies < n; nr_zombies++) {
		zombies[nr_zombies] = fork_zombie(nr_zombies % 256);
		if (zombies[nr_zombies] < 0)
			return wl_fail(t, "cannot fork: %m");
	}
	return 0;
}

/* Starts the two whose timers expire within the window. */
static int start_timed(struct trial *t)
{
	const struct worker *continued;

	shared->orders.timer_ms = wl_param_int(t, "window_s") * 200;
	killed_child = fork_killed_child(shared->orders.timer_ms);
	continued = add_worker(t, &worker_continued);
	if (!continued)
		return -1;
	if (!task_wait_state(continued->pid, 'T', LIMIT_MS))
		return wl_fail(t, "%s is not in state T", continued->kind->name);
	return 0;
}

/* The task of a worker that stays in one state during the suspend, and that state; 0: none. */
static char held_state(const struct worker *w, int *tid)
{
	*tid = w->pid;
	if (!strcmp(w->kind->name, "stopped"))
		return 'T';
	if (!strcmp(w->kind->name, "leader_dead"))
		return 'Z';
	if (!strcmp(w->kind->name, "tracer_in_wait")) {
		*tid = w->activities[1].tid;
		return 't';
	}
	return 0;
}

static int hold_some(struct trial *t)
{
	const struct worker *idle = wait_for_all(true);
	int tid;

	if (idle)
		return wl_fail(t, "worker %s did not start", idle->kind->name);
	shared->orders.hold = true;
	for (struct worker *w = workers; w < workers + nr_workers; w++) {
		char state = held_state(w, &tid);

		if (state == 'T')
			kill(w->pid, SIGSTOP);
		if (state && !task_wait_state(tid, state, LIMIT_MS))
			return wl_fail(t, "%s is not in state %c", w->kind->name, state);
		w->state = state == 'Z' ? 0 : state; /* its threads continue */
	}
	for (int i = 0; i < nr_zombies; i++)
		if (!task_wait_state(zombies[i], 'Z', LIMIT_MS))
			return wl_fail(t, "zombie %d did not exit", i);
	return 0;
}

static bool states_kept(struct trial *t)
{
	int tid;

	for (const struct worker *w = workers; w < workers + nr_workers; w++) {
		char was = held_state(w, &tid), is = was ? task_state(tid) : 0;

		if (is != was)
			return wl_check(t, "states_kept", false, "%s: %c became %c", w->kind->name,
					was, is ? is : '-');
	}
	for (int i = 0; i < nr_zombies; i++)
		if (task_state(zombies[i]) != 'Z')
			return wl_check(t, "states_kept", false, "zombie %d is gone", i);
	return wl_check(t, "states_kept", true, "%d workers, %d zombies", nr_workers, nr_zombies);
}

static bool check_none(struct trial *t, const char *name, const struct worker *stuck)
{
	return wl_check(t, name, !stuck, "%s %c", stuck ? stuck->kind->name : "",
			stuck ? task_state(stuck->pid) : ' ');
}

static bool released(struct trial *t)
{
	const struct worker *stuck;

	remember_notes();
	shared->orders.hold = false;
	for (const struct worker *w = workers; w < workers + nr_workers; w++)
		if (w->state == 'T')
			kill(w->pid, SIGCONT);
	stuck = wait_for_all(true);
	shared->orders.watch = false;
	return check_none(t, "released", stuck);
}

static void nothing_lost(struct trial *t)
{
	int status = task_reap(killed_child, LIMIT_MS), lost = 0;
	char names[256] = "";

	wl_check(t, "killed_dies", WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
		 "wait status %#x", (unsigned)status);
	shared->orders.finish = true;
	for (const struct worker *w = workers; w < workers + nr_workers; w++) {
		status = task_reap(w->pid, LIMIT_MS);
		if (WIFEXITED(status) && WEXITSTATUS(status) == WORKER_EXIT_OK)
			continue;
		lost++;
		snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s (%#x)",
			 w->kind->name, (unsigned)status);
	}
	wl_check(t, "workers_whole", !lost, "%d lost%s", lost, names);
	lost = 0;
	for (int i = 0; i < nr_zombies; i++) {
		status = task_reap(zombies[i], LIMIT_MS);
		lost += !WIFEXITED(status) || WEXITSTATUS(status) != i % 256;
	}
	wl_check(t, "zombies_whole", !lost, "%d of %d lost", lost, nr_zombies);
	wl_check(t, "no_child_left", waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "%s", "");
}

/* Reads when freezing began and ended, and when thawing began. False if one of them is missing. */
static bool read_trace(struct phase *freeze, int64_t *thaw_ns)
{
	struct tracer_hit hit;
	uint64_t name, begins;
	int got;

	*thaw_ns = freeze->start_ns = freeze->end_ns = -1;
	while ((got = tracer_next(&tracer, &hit)) > 0) {
		if (!tp_number(&hit, &action, &name) || !tp_number(&hit, &begin, &begins))
			return false;
		if (tp_constant(name, "freeze_processes"))
			*(begins ? &freeze->start_ns : &freeze->end_ns) = hit.time_ns;
		else if (begins && tp_constant(name, "thaw_processes"))
			*thaw_ns = hit.time_ns;
	}
	return got == 0 && phase_ns(freeze) >= 0 && *thaw_ns >= 0;
}

/* Whether the task did not run from the one time to the other. Returns its longest gap as well. */
static bool was_still(const struct activity *c, int64_t from, int64_t to, int64_t *longest)
{
	bool still = false;

	*longest = 0;
	for (const struct gap *g = c->gaps; g < c->gaps + WORKER_GAPS; g++) {
		still |= g->from <= from && g->to >= to;
		if (g->to - g->from > *longest)
			*longest = g->to - g->from;
	}
	return still;
}

static void all_frozen(struct trial *t)
{
	struct phase freeze;
	int64_t from, to, longest;

	if (!read_trace(&freeze, &to)) {
		wl_check(t, "all_frozen", false, "the trace has no freeze and thaw");
		return;
	}
	from = freeze.end_ns;
	wl_sample(t, "freeze_ns", phase_ns(&freeze));
	for (const struct worker *w = workers; w < workers + nr_workers; w++)
		for (int i = 0; i < w->kind->activities; i++) {
			if (was_still(&w->activities[i], from, to, &longest))
				continue;
			wl_check(t, "all_frozen", false,
				 "%s, task %d: frozen for %lld us, but its longest gap is %lld us",
				 w->kind->name, i, (long long)(to - from) / 1000,
				 (long long)longest / 1000);
			return;
		}
	wl_check(t, "all_frozen", true, "for %lld us", (long long)(to - from) / 1000);
}

/*
 * The worker in_sleep_lock may have the mutex at the moment when the suspend tries to take it.
 * The kernel then returns at once; if it cannot freeze a task it tries for 20 s.
 */
static int64_t suspend_unless_locked(void)
{
	int64_t call_ns, start;
	int tries = TRIES;

	do {
		start = now_ns();
		call_ns = suspend_once();
	} while (call_ns == -EBUSY && now_ns() - start < LOCKED_MS * 1000000LL && --tries);
	return call_ns;
}

static void log_clean(struct trial *t)
{
	struct kmsg m;
	int got = kmsg_problem(log_fd, &m);

	wl_check(t, "log_clean", !got, "%s", got > 0 ? m.text : strerror(-got));
}

static int setup(struct trial *t)
{
	static const char *const names[] = {"power:suspend_resume", NULL};
	int error;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return wl_fail(t, "cannot mmap memory: %m");
	worker_orders = &shared->orders;
	log_fd = kmsg_open();
	if (log_fd < 0)
		return wl_fail(t, "cannot read /dev/kmsg: %s", strerror(-log_fd));
	error = tracer_open(&tracer, names);
	if (!error)
		error = tp_field(&tracer, 0, "action", &action);
	if (!error)
		error = tp_field(&tracer, 0, "start", &begin);
	if (error)
		return wl_fail(t, "cannot open the tracepoint %s: %s", names[0], strerror(-error));
	return suspend_prepare(t, "freezer") || suspend_keep_frozen(t, wl_param_int(t, "window_s"))
		       ? -1
		       : 0;
}

static int run(struct trial *t)
{
	int64_t call_ns;

	if (start_all(t) || hold_some(t) || start_timed(t))
		return -1;
	remember_notes();
	shared->orders.watch = true;
	tracer_start(&tracer);
	call_ns = suspend_unless_locked();
	tracer_stop(&tracer);
	remember_notes();
	wl_check(t, "suspended", call_ns > 0, "%s", call_ns > 0 ? "" : strerror((int)-call_ns));
	states_kept(t);
	/* A task that is stuck here is stuck for good; the log may contain the reason. */
	if (check_none(t, "all_resumed", wait_for_all(false)) && released(t)) {
		nothing_lost(t);
		all_frozen(t);
	}
	log_clean(t);
	return 0;
}

/*
 * Not kill_and_reap_all(): tasks that a broken freezer left frozen cannot be killed, so
 * they are left.
 */
static void cleanup(struct trial *t)
{
	int64_t end = now_ns() + LAST_MS * 1000000LL;

	(void)t;
	for (const struct worker *w = workers; w < workers + nr_workers; w++)
		kill(-w->pid, SIGKILL);
	if (killed_child)
		kill(killed_child, SIGKILL);
	killed_child = nr_workers = 0;
	while ((waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) && now_ns() < end)
		sleep_ms(1);
	suspend_restore();
	tracer_close(&tracer);
	if (log_fd >= 0)
		close(log_fd);
	log_fd = -1;
	munmap(shared, sizeof(*shared));
	shared = NULL;
}

static const char *const params[] = {"copies", "zombies", "window_s", NULL};
static const struct workload freezer_states = {
	.name = "freezer_states",
	.summary = "is everything frozen, is nothing lost, in every state of a task",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(freezer_states);
