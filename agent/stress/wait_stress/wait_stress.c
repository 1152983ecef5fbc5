// SPDX-License-Identifier: GPL-2.0
/*
 * A process has children of many kinds. After each random step it waits for some of them in a
 * random way, and a model says which of them may be reported. Then children exit faster than they
 * are waited for, and many processes fork, exit and wait at the same time.
 */
#define _GNU_SOURCE /* __WALL */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "children.h"
#include "lib/kmsg.h"
#include "lib/tasks.h"
#include "storm.h"
#include "wait_stress.h"
#include "workload.h"

#define CHILDREN 24
#define GROUPS 3 /* the first is that of the parent */

/* The threads that a child can belong to or that can trace it; OTHER is in another process. */
enum thread { NONE, MAIN, HELPER, OTHER };

struct child {
	pid_t pid; /* 0: the entry is free */
	enum kind kind;
	int group;
	enum thread parent, tracer;
	enum { RUNS, STOPPED, LEADER_EXITED, EXITED } state;
	bool trap, stop, cont; /* what has not been reported */
	bool trapped; /* and goes on only when its tracer says so */
	struct slot *slot;
};

struct call {
	idtype_t type;
	id_t id;
	int options;
};

static struct shared {
	struct wait_result result;
	struct slot slots[CHILDREN];
} * shared;

static struct child children[CHILDREN];
static pid_t groups[GROUPS];
static struct helper helper, other;
static struct prng prng;
static int log_fd = -1;

static int below(int bound)
{
	return (int)prng_below(&prng, (uint64_t)bound);
}

/* -- the model -- */

static bool chosen(const struct child *c, const struct call *w)
{
	if (w->type == P_PID)
		return c->pid == (pid_t)w->id;
	return w->type == P_ALL || groups[c->group] == (pid_t)w->id;
}

/* Whether the call waits for this child, whatever its state is. The main thread calls. */
static bool eligible(const struct child *c, const struct call *w)
{
	bool mine = !(w->options & __WNOTHREAD);
	bool clone = (w->options & __WALL) || (c->kind == CLONED) == !!(w->options & __WCLONE);
	bool natural = clone && (mine || c->parent == MAIN);
	bool traced = c->tracer == MAIN || (mine && c->tracer == HELPER);

	return c->pid && chosen(c, w) && (natural || traced);
}

/* Whether the call may report the child as CLD_... */
static bool reports(const struct child *c, const struct call *w, int code)
{
	if (!eligible(c, w))
		return false;
	switch (code) {
	case CLD_EXITED:
	case CLD_KILLED:
		return (w->options & WEXITED) && c->state == EXITED && c->tracer != OTHER;
	case CLD_TRAPPED:
		return c->trap;
	case CLD_STOPPED:
		return (w->options & WSTOPPED) && c->stop;
	case CLD_CONTINUED:
		return (w->options & WCONTINUED) && c->cont;
	default:
		return false;
	}
}

/* Whether the call has to wait for what the child does next. */
static bool to_come(const struct child *c, const struct call *w)
{
	bool ours = c->tracer == MAIN || c->tracer == HELPER;

	if (!eligible(c, w))
		return false;
	if (c->state == EXITED)
		return c->tracer == OTHER;
	/* A tracee that has exited does not stop any more. */
	return c->state != LEADER_EXITED || !ours || (w->options & (WEXITED | WCONTINUED));
}

static bool reports_any(const struct child *c, const struct call *w)
{
	return reports(c, w, CLD_EXITED) || reports(c, w, CLD_TRAPPED) ||
	       reports(c, w, CLD_STOPPED) || reports(c, w, CLD_CONTINUED);
}

static struct child *find(pid_t pid)
{
	for (int i = 0; i < CHILDREN; i++)
		if (children[i].pid == pid)
			return &children[i];
	return NULL;
}

static void forget(struct child *c, int code)
{
	if (code == CLD_EXITED || code == CLD_KILLED)
		c->pid = 0;
	else if (code == CLD_TRAPPED)
		c->trap = false;
	else if (code == CLD_STOPPED)
		c->stop = false;
	else
		c->cont = false;
}

/* -- waiting, compared with the model -- */

/* The child that the model expects, or that was reported; NULL if no child is. */
static bool fails(enum wait_check check, const struct call *w, int got, const struct child *c)
{
	struct wait_result *r = &shared->result;

	r->failed |= 1U << check;
	snprintf(r->detail, sizeof(r->detail), "step %lld: waitid(%d, %d, %#x) returned %d: %s",
		 (long long)r->steps, (int)w->type, (int)w->id, w->options, got,
		 got < 0 ? strerror(errno) : "");
	if (c)
		snprintf(r->detail + strlen(r->detail), sizeof(r->detail) - strlen(r->detail),
			 "; child %d, kind %d, state %d, parent %d, tracer %d, events %d %d %d",
			 (int)c->pid, c->kind, c->state, c->parent, c->tracer, c->trap, c->stop,
			 c->cont);
	return false;
}

static bool wait_and_compare(const struct call *w)
{
	struct child *c, *any = NULL, *later = NULL;
	siginfo_t info = {0};
	int status;

	for (int i = 0; i < CHILDREN; i++) {
		any = reports_any(&children[i], w) ? &children[i] : any;
		later = to_come(&children[i], w) ? &children[i] : later;
	}
	errno = 0;
	status = waitid(w->type, w->id, &info, w->options | WNOHANG);
	if (status || !info.si_pid) {
		if (any)
			return fails(CHECK_FOUND, w, status, any);
		if (status ? later || errno != ECHILD : !later)
			return fails(CHECK_NOTHING, w, status, later);
		return true;
	}
	c = find(info.si_pid);
	if (!c || !reports(c, w, info.si_code))
		return fails(CHECK_RIGHT, w, info.si_pid, c);
	if (!(w->options & WNOWAIT))
		forget(c, info.si_code);
	return true;
}

static struct call random_call(void)
{
	static const int kinds[] = {0, 0, __WALL, __WALL, __WCLONE};
	static const int events[] = {
		WEXITED,  WEXITED,   WEXITED, WEXITED | WSTOPPED, WEXITED | WSTOPPED | WCONTINUED,
		WSTOPPED, WCONTINUED};
	struct call w = {.type = P_ALL};

	w.options = kinds[below(5)] | events[below(7)];
	w.options |= below(3) ? 0 : WNOWAIT;
	w.options |= below(4) ? 0 : __WNOTHREAD;
	if (below(3) == 0) {
		w.type = P_PGID;
		w.id = (id_t)groups[below(GROUPS)];
	} else if (below(6) == 0) {
		w.type = P_PID;
		w.id = (id_t)children[below(CHILDREN)].pid;
	}
	if (w.type == P_PID && !w.id)
		w.type = P_ALL;
	return w;
}

/* -- steps -- */

static bool add(pid_t pid, enum kind kind, int group, enum thread parent)
{
	struct child *c = find(0);

	if (pid <= 0)
		return false;
	*c = (struct child){.pid = pid,
			    .kind = kind,
			    .group = group,
			    .parent = parent,
			    .slot = &shared->slots[c - children]};
	return true;
}

static bool make(void)
{
	enum kind kind = (enum kind)below(NR_KINDS);
	enum thread parent = below(3) ? MAIN : HELPER;
	struct child *c = find(0);
	int group = below(GROUPS), room = 0;
	struct slot *slot = &shared->slots[c ? c - children : 0];
	pid_t pid;

	/* Each child that makes some needs room for them. */
	for (int i = 0; i < CHILDREN; i++)
		room += !children[i].pid ? 1 : children[i].kind == PARENT ? -ORPHANS : 0;
	if (room <= ORPHANS)
		return true;
	pid = parent == MAIN ? child_make(kind, slot, groups[group])
			     : helper_makes(&helper, kind, slot, groups[group]);
	return add(pid, kind, group, parent);
}

/* Waits until it can be reaped, by a way that searches no list; that of another's tracee by its
 * state. */
static bool wait_exited(const struct child *c)
{
	int64_t end = now_ns() + LIMIT_MS * 1000000LL;
	siginfo_t info = {0};

	if (c->tracer == OTHER)
		return task_wait_state(c->pid, 'Z', LIMIT_MS);
	while (waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) ||
	       !info.si_pid || info.si_code == CLD_TRAPPED) {
		if (now_ns() > end)
			return false;
		sleep_ms(1);
	}
	return true;
}

/* The children of a killed child become those of the main thread, which is a subreaper. */
static bool adopt(const struct child *parent)
{
	for (int i = 0; i < ORPHANS; i++) {
		struct child *c = find(0);

		if (!add(parent->slot->orphans[i], PLAIN, parent->group, MAIN))
			return false;
		c->state = i % 2 ? EXITED : RUNS;
	}
	return true;
}

static bool kill_child(struct child *c)
{
	if (c->state == EXITED)
		return true;
	if (kill(c->pid, SIGKILL) || !wait_exited(c))
		return false;
	c->state = EXITED;
	c->trap = c->stop = c->cont = false;
	if (c->kind != PARENT)
		return true;
	c->kind = PLAIN;
	return adopt(c);
}

static bool change_threads(struct child *c)
{
	if (c->kind != THREADED || c->state == EXITED || c->trapped)
		return true;
	if (c->state == RUNS && below(2)) {
		c->state = LEADER_EXITED;
		return child_leader_exits(c->pid, c->slot);
	}
	/* The thread that executes the program takes the place of the first one, and is not traced.
	 */
	c->state = RUNS;
	c->kind = PLAIN;
	c->tracer = NONE;
	return child_thread_executes(c->pid, c->slot);
}

static bool stop_or_continue(struct child *c)
{
	if (c->state == STOPPED) {
		c->state = RUNS;
		c->stop = false;
		c->cont = true;
		return !kill(c->pid, SIGCONT) && task_wait_state(c->pid, 'S', LIMIT_MS);
	}
	if (c->state != RUNS || c->tracer != NONE || c->kind == THREADED)
		return true;
	c->state = STOPPED;
	c->stop = true;
	c->cont = false;
	return !kill(c->pid, SIGSTOP) && task_wait_state(c->pid, 'T', LIMIT_MS);
}

static bool trace(struct child *c)
{
	const struct call own = {.type = P_ALL, .options = WEXITED | __WALL | __WNOTHREAD};

	if (c->state != RUNS || c->cont)
		return true;
	if (c->tracer == NONE) {
		c->tracer = (enum thread)(MAIN + below(c->kind == THREADED ? 2 : 3));
		if (c->tracer == MAIN)
			return !ptrace(PTRACE_SEIZE, c->pid, 0, 0);
		return helper_traces(c->tracer == HELPER ? &helper : &other, c->pid);
	}
	if (c->tracer == OTHER || c->trapped)
		return true;
	c->trap = c->trapped = true;
	/* A child of this thread is found on the list of its children alone then. */
	if (c->tracer == HELPER)
		return helper_interrupts(&helper, c->pid) && wait_and_compare(&own);
	return !ptrace(PTRACE_INTERRUPT, c->pid, 0, 0) && task_wait_state(c->pid, 't', LIMIT_MS);
}

/* The helper's children become those of the main thread, and its tracees are not traced any more.
 */
static bool renew_helper(void)
{
	enum thread thread = below(2) ? HELPER : OTHER;

	for (int i = 0; i < CHILDREN; i++) {
		struct child *c = &children[i];

		if (c->tracer == thread) {
			c->tracer = NONE;
			c->trap = c->trapped = false;
		}
		if (c->parent == thread)
			c->parent = MAIN;
	}
	return helper_renews(thread == HELPER ? &helper : &other);
}

static bool step(void)
{
	struct child *c = &children[below(CHILDREN)];
	int what = below(16);

	snprintf(shared->result.doing, sizeof(shared->result.doing),
		 "%d with %d, kind %d, state %d, tracer %d, parent %d", what, (int)c->pid, c->kind,
		 c->state, c->tracer, c->parent);
	if (what < 4)
		return make();
	if (what == 4)
		return renew_helper();
	if (!c->pid)
		return true;
	if (what < 9)
		return kill_child(c);
	if (what < 12)
		return change_threads(c);
	return what < 14 ? stop_or_continue(c) : trace(c);
}

static bool reap_all(void)
{
	const struct call w = {.type = P_ALL, .options = WEXITED | __WALL};
	bool ok = helper_renews(&other);

	for (int i = 0; i < CHILDREN; i++)
		children[i].tracer = children[i].tracer == OTHER ? NONE : children[i].tracer;
	/* Those that a killed child leaves are killed next. */
	for (int i = 0; i < 2 * CHILDREN && ok; i++)
		ok = !children[i % CHILDREN].pid || kill_child(&children[i % CHILDREN]);
	/* At last no child is left. */
	for (int i = 0; i <= CHILDREN && ok; i++)
		ok = wait_and_compare(&w);
	return ok;
}

/*
 * Children exit as fast as they are waited for, while others have exited and one runs: those others
 * must get their turn. Their order is that of their exits where the kernel keeps it.
 */
static bool in_turn(void)
{
	const struct call all = {.type = P_ALL, .options = WEXITED};
	pid_t early[CHILDREN - 2];
	siginfo_t info = {0};
	int left = 0, order;

	for (int i = 0; i < CHILDREN - 1; i++)
		if (!add(child_make(PLAIN, &shared->slots[i], groups[0]), PLAIN, 0, MAIN))
			return false;
	for (; left < CHILDREN - 2; left++) {
		do
			order = 1 + below(CHILDREN - 2);
		while (children[order].state == EXITED);
		early[left] = children[order].pid;
		if (!kill_child(&children[order]))
			return false;
	}
	for (int i = 0; i < CHILDREN - 2; i++) {
		struct child *c = find(0);

		waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT);
		shared->result.in_order += info.si_pid == early[i];
		if (!add(child_make(PLAIN, &shared->slots[c - children], groups[0]), PLAIN, 0,
			 MAIN) ||
		    !kill_child(c) || !wait_and_compare(&all))
			return false;
	}
	for (int i = 0; i < CHILDREN - 2; i++)
		if (find(early[i]))
			return fails(CHECK_IN_TURN, &all, early[i], NULL);
	return reap_all();
}

static _Noreturn void be_parent(int64_t steps)
{
	bool ok = (groups[0] = getpid()) && !setpgid(0, 0) && !prctl(PR_SET_CHILD_SUBREAPER, 1) &&
		  helper_start(&helper, false);
	struct call w;

	for (; ok && shared->result.steps < steps; shared->result.steps++) {
		ok = step();
		for (int i = below(4); ok && i > 0; i--) {
			w = random_call();
			ok = wait_and_compare(&w);
		}
	}
	ok = ok && reap_all() && in_turn();
	shared->result.ended = ok || shared->result.failed;
	_exit(0);
}

/* -- the agent's side -- */

static bool start_groups(void)
{
	for (int i = 1; i < GROUPS; i++) {
		groups[i] = fork();
		if (!groups[i]) {
			setpgid(0, 0);
			for (;;)
				pause();
		}
		if (groups[i] < 0 || setpgid(groups[i], groups[i]))
			return false;
	}
	return true;
}

static bool stop_groups(void)
{
	bool gone = true;

	for (int i = 0; i < GROUPS; i++)
		if (groups[i] > 0)
			kill(-groups[i], SIGKILL);
	for (int i = 0; i < GROUPS; i++)
		gone = (groups[i] <= 0 || group_reap(groups[i], LIMIT_MS)) && gone;
	return gone;
}

static int compare_with_model(struct trial *t, int64_t steps)
{
	static const char *const checks[] = {[CHECK_FOUND] = "found",
					     [CHECK_RIGHT] = "right_child",
					     [CHECK_NOTHING] = "nothing",
					     [CHECK_IN_TURN] = "in_turn"};
	const struct wait_result *r = &shared->result;
	int64_t last = -1;

	if (!start_groups() || !helper_start(&other, true))
		return wl_fail(t, "cannot start processes: %m");
	groups[0] = fork();
	if (!groups[0])
		be_parent(steps);
	for (int idle = 0; waitpid(groups[0], NULL, WNOHANG) == 0 && idle < LIMIT_MS / 10; idle++) {
		idle = last == r->steps ? idle : 0;
		last = r->steps;
		sleep_ms(10);
	}
	helper_stop(&other);
	wl_check(t, "all_gone", stop_groups(), "%s", "");
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		wl_check(t, checks[i], !(r->failed & (1U << i)), "%s", r->detail);
	wl_sample(t, "in_order_count", r->in_order);
	wl_sample(t, "steps_count", r->steps);
	return r->ended ? 0
			: wl_fail(t, "step %lld did not end: %s", (long long)r->steps, r->doing);
}

static int run(struct trial *t)
{
	struct kmsg m;
	int got;

	memset(shared, 0, sizeof(*shared));
	memset(children, 0, sizeof(children));
	memset(groups, 0, sizeof(groups));
	prng.state = (uint64_t)wl_param_int(t, "seed");
	if (compare_with_model(t, wl_param_int(t, "steps")) ||
	    storm(t, wl_param_int(t, "storm_ms"), prng_next(&prng)))
		return -1;
	got = kmsg_problem(log_fd, &m);
	wl_check(t, "log_clean", !got, "%s", got > 0 ? m.text : strerror(-got));
	return 0;
}

static int setup(struct trial *t)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	log_fd = kmsg_open();
	if (shared == MAP_FAILED || log_fd < 0)
		return wl_fail(t, "cannot prepare memory and files: %m");
	return 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	stop_groups();
	close(log_fd);
	munmap(shared, sizeof(*shared));
}

static const char *const params[] = {"steps", "storm_ms", "seed", NULL};
static const struct workload wait_stress = {
	.name = "wait_stress",
	.summary = "wait for children of many kinds, and compare what is reported with a model",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(wait_stress);
