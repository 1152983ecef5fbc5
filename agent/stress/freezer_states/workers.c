// SPDX-License-Identifier: GPL-2.0
#include "workers.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/tasks.h"

#define WAKE_MS 3 /* the period of a sleeping worker's timer */

struct orders *worker_orders;

static void keep_gap(struct activity *c, int64_t from, int64_t to)
{
	struct gap *shortest = c->gaps;

	for (struct gap *g = c->gaps; g < c->gaps + WORKER_GAPS; g++)
		if (g->to - g->from < shortest->to - shortest->from)
			shortest = g;
	if (to - from > shortest->to - shortest->from) {
		shortest->from = from;
		shortest->to = to;
	}
}

static void note(struct activity *c)
{
	int64_t now = now_ns();

	if (worker_orders->watch && c->last)
		keep_gap(c, c->last, now);
	c->last = now;
	c->notes++;
}

static bool note_and_go_on(struct activity *c)
{
	note(c);
	return !worker_orders->finish;
}

static void record_tid(struct activity *c)
{
	c->tid = (int)syscall(SYS_gettid);
}

static const struct timespec nap = {.tv_nsec = WAKE_MS * 1000000};
static volatile sig_atomic_t caught_usr1;

static void on_signal(int signo)
{
	if (signo == SIGUSR1)
		caught_usr1++;
}

void signal_after(int signo, int64_t ms, int64_t period_ms)
{
	struct sigaction act = {.sa_handler = on_signal}; /* no SA_RESTART: signals end sleeps */
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = signo};
	struct itimerspec when = {
		.it_value = {ms / 1000, ms % 1000 * 1000000},
		.it_interval = {period_ms / 1000, period_ms % 1000 * 1000000},
	};
	timer_t timer;

	sigaction(signo, &act, NULL); /* fails for SIGKILL, which needs no handler */
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &when, NULL))
		_exit(EXIT_FAILURE);
}

static void start_wake_timer(void)
{
	signal_after(SIGALRM, WAKE_MS, WAKE_MS);
}

/* -- the kinds -- */

static bool spin(struct activity *c)
{
	while (note_and_go_on(c))
		;
	return true;
}

static bool in_nanosleep(struct activity *c)
{
	while (note_and_go_on(c))
		nanosleep(&nap, NULL);
	return true;
}

static bool in_pause(struct activity *c)
{
	start_wake_timer();
	while (note_and_go_on(c))
		pause();
	return true;
}

static bool in_pipe_read(struct activity *c)
{
	int fds[2];
	char byte;

	if (pipe(fds))
		return false;
	start_wake_timer();
	while (note_and_go_on(c))
		if (read(fds[0], &byte, 1) != -1 || errno != EINTR)
			return false;
	return true;
}

static bool in_futex(struct activity *c)
{
	uint32_t word = 0;

	while (note_and_go_on(c))
		if (syscall(SYS_futex, &word, FUTEX_WAIT, 0, &nap, NULL, 0) != -1 ||
		    errno != ETIMEDOUT)
			return false;
	return true;
}

static bool in_epoll(struct activity *c)
{
	int fd = epoll_create1(0);
	struct epoll_event event;

	while (note_and_go_on(c))
		if (epoll_wait(fd, &event, 1, WAKE_MS) != 0 && errno != EINTR)
			return false; /* a freeze ends this wait with EINTR on every kernel */
	return true;
}

static bool in_timerfd_read(struct activity *c)
{
	struct itimerspec every = {nap, nap};
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	uint64_t expired;

	if (timerfd_settime(fd, 0, &every, NULL))
		return false;
	while (note_and_go_on(c))
		if (read(fd, &expired, sizeof(expired)) != sizeof(expired))
			return false;
	return true;
}

/*
 * Asks for the mutex that a suspend holds, in a call that first marks the task as not to be
 * frozen (lock_system_sleep()). What it writes is what is there.
 */
static bool in_sleep_lock(struct activity *c)
{
	while (note_and_go_on(c))
		if (write_file("/sys/power/pm_test", "freezer"))
			return false;
	return true;
}

/* One signal stays blocked and pending, another is delivered all the time. */
static bool with_signals(struct activity *c)
{
	sigset_t usr1, pending;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	signal_after(SIGUSR1, WAKE_MS, 0);
	signal_after(SIGALRM, 1, 1);
	while (note_and_go_on(c))
		;
	if (sigpending(&pending) || !sigismember(&pending, SIGUSR1) || caught_usr1)
		return false;
	sigprocmask(SIG_UNBLOCK, &usr1, NULL);
	return caught_usr1 == 1;
}

/*
 * Stopped, and continued by a timer while it is frozen: it must not run then, and must be
 * continued after the thaw.
 */
static bool continued_later(struct activity *c)
{
	signal_after(SIGCONT, worker_orders->timer_ms, 0);
	note(c);
	raise(SIGSTOP);
	return in_nanosleep(c);
}

static bool exited_ok(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == WORKER_EXIT_OK;
}

/*
 * A parent that is blocked in vfork() while its child sleeps. The second activity is the
 * child's.
 */
static bool in_vfork(struct activity *c)
{
	while (note_and_go_on(c)) {
		int status;
		pid_t pid = vfork();

		if (pid == 0) {
			record_tid(c + 1), note(c + 1);
			nanosleep(&nap, NULL);
			_exit(WORKER_EXIT_OK);
		}
		if (waitpid(pid, &status, 0) != pid || !exited_ok(status))
			return false;
	}
	return true;
}

static pid_t fork_tracee(struct activity *c)
{
	pid_t pid = fork();

	if (pid == 0) {
		record_tid(c);
		if (ptrace(PTRACE_TRACEME, 0, 0, 0))
			_exit(EXIT_FAILURE);
		while (note_and_go_on(c))
			raise(SIGTRAP);
		_exit(WORKER_EXIT_OK);
	}
	return pid;
}

/* A tracee that stops and a tracer that continues it, as fast as they can. */
static bool tracing(struct activity *c)
{
	pid_t pid = fork_tracee(c + 1);
	int status;

	for (;;) {
		note(c);
		if (waitpid(pid, &status, __WALL) != pid)
			return false;
		if (!WIFSTOPPED(status))
			return exited_ok(status);
		if (ptrace(PTRACE_CONT, pid, 0, 0))
			return false;
	}
}

/* A tracee that stays stopped during the suspend; its tracer is blocked in wait. */
static bool holding_tracee(struct activity *c)
{
	pid_t pid = fork_tracee(c + 1);
	bool stopped = false;
	int status;

	start_wake_timer();
	for (;;) {
		note(c);
		if (stopped && !worker_orders->hold) {
			if (ptrace(PTRACE_CONT, pid, 0, 0))
				return false;
			stopped = false;
		}
		if (waitpid(pid, &status, __WALL) == pid) {
			if (!WIFSTOPPED(status))
				return exited_ok(status);
			stopped = true;
		} else if (errno != EINTR) {
			return false;
		}
	}
}

/* Not by returning: when the last thread returns, the process exits with code 0. */
static void *spinning_thread(void *activity)
{
	record_tid(activity);
	syscall(SYS_exit, spin(activity) ? WORKER_EXIT_OK : EXIT_FAILURE);
	return NULL;
}

static void *sleeping_thread(void *activity)
{
	record_tid(activity);
	syscall(SYS_exit, in_nanosleep(activity) ? WORKER_EXIT_OK : EXIT_FAILURE);
	return NULL;
}

/* The leader has exited, its two threads run. */
static bool without_leader(struct activity *c)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, spinning_thread, c) ||
	    pthread_create(&thread, NULL, sleeping_thread, c + 1))
		return false;
	syscall(SYS_exit, WORKER_EXIT_OK);
	return false;
}

static void *no_thread(void *unused)
{
	return unused;
}

/*
 * Exits that race with the freezer: of a process, an orphan and a thread in turn. None may
 * be lost.
 */
static bool exiting(struct activity *c)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return false;
	while (note_and_go_on(c)) {
		pthread_t thread;
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			if (fork() == 0)
				record_tid(c + 1), note(c + 1);
			_exit(WORKER_EXIT_OK);
		}
		for (int children = 2; children; children--)
			if (waitpid(-1, &status, 0) <= 0 || !exited_ok(status))
				return false;
		if (pthread_create(&thread, NULL, no_thread, NULL) || pthread_join(thread, NULL))
			return false;
	}
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

static void *exec_self(void *unused)
{
	while (task_state(getpid()) != 'Z')
		nanosleep(&nap, NULL);
	execl("/proc/self/exe", "kteardown-agent", "--help", NULL);
	return unused;
}

/*
 * A thread executes a program and replaces its leader, which has exited. The leader must
 * have exited: otherwise exec waits, unfreezable, for a task that may be frozen, and no
 * current kernel can suspend until it gives up (de_thread()).
 */
static bool executing(struct activity *c)
{
	while (note_and_go_on(c)) {
		pthread_t thread;
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			record_tid(c + 1);
			note(c + 1);
			close(STDOUT_FILENO);
			syscall(SYS_exit, pthread_create(&thread, NULL, exec_self, NULL));
		}
		if (waitpid(pid, &status, 0) != pid || status != 0)
			return false;
	}
	return true;
}

const struct worker_kind worker_kinds[] = {
	{"spinning", spin, 1},
	{"in_nanosleep", in_nanosleep, 1},
	{"in_pause", in_pause, 1},
	{"in_pipe_read", in_pipe_read, 1},
	{"in_futex", in_futex, 1},
	{"in_epoll", in_epoll, 1},
	{"in_timerfd_read", in_timerfd_read, 1},
	{"in_sleep_lock", in_sleep_lock, 1},
	{"with_signals", with_signals, 1},
	{"stopped", in_nanosleep, 1},
	{"in_vfork", in_vfork, 2},
	{"tracing", tracing, 2},
	{"tracer_in_wait", holding_tracee, 2},
	{"leader_dead", without_leader, 2},
	{"exiting", exiting, 2},
	{"executing", executing, 2},
	{NULL, NULL, 0},
};

const struct worker_kind worker_continued = {"continued_while_frozen", continued_later, 1};

pid_t worker_start(const struct worker_kind *kind, struct activity *activities)
{
	pid_t pid = fork();

	if (pid == 0) {
		/*
		 * If all workers, which are children of init, were in one process group, an exit
		 * beside a stopped task would send SIGHUP to all of them (kill_orphaned_pgrp()).
		 */
		setpgid(0, 0);
		record_tid(activities);
		_exit(kind->body(activities) ? WORKER_EXIT_OK : EXIT_FAILURE);
	}
	setpgid(pid, pid); /* the child does the same, since either may run first */
	return pid;
}
