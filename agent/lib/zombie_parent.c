// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* clone(), cpu_set_t */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zombie_parent.h"

/* How many zombies are made between two progress reports. */
#define PROGRESS 5000
#define ANSWER_MS 600000
/* Sent to the parent: count the zombies again. */
#define ORDER SIGUSR1

/* What the parent reports to the agent. */
struct answer {
	enum { MADE, COUNTED, FAILED } kind;
	int64_t value; /* how many so far; how many now; the error number */
};

/* -- in the parent -- */

static int exit_at_once(void *unused)
{
	(void)unused;
	_exit(0);
}

static pid_t make_zombie(bool shared)
{
	/*
	 * One stack for all of them: with CLONE_VFORK the parent continues only when the child no
	 * longer uses it.
	 */
	static char stack[4096] __attribute__((aligned(16)));
	pid_t pid;

	if (shared)
		return clone(exit_at_once, stack + sizeof(stack),
			     CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_VFORK |
				     SIGCHLD,
			     NULL);
	pid = fork();
	if (!pid)
		_exit(0);
	return pid;
}

static void answer(int fd, int kind, int64_t value)
{
	struct answer a = {.kind = kind, .value = value};

	if (write_all(fd, &a, sizeof(a)) || kind == FAILED)
		_exit(1);
}

/* WNOWAIT does not reap the zombie. With WNOHANG, si_pid is 0 for a child that still runs. */
static int64_t count_zombies(const pid_t *pids, int64_t count, int flags)
{
	int64_t zombies = 0, i;

	for (i = 0; i < count; i++) {
		siginfo_t info = {0};

		if (!waitid(P_PID, pids[i], &info, WEXITED | WNOWAIT | flags) && info.si_pid)
			zombies++;
	}
	return zombies;
}

/*
 * A child on another CPU needs an interrupt there, and one back when it exits: under
 * multi-threaded emulation this takes 3 ms for each zombie instead of 0.1 ms.
 */
static void stay_on_this_cpu(cpu_set_t *before)
{
	sched_getaffinity(0, sizeof(*before), before);
	stay_on_cpu(sched_getcpu());
}

/*
 * The kernel freezes a task that waits for a signal where it sleeps (TASK_FREEZABLE,
 * v6.1). A task that reads a pipe must be woken to freeze itself, and the freezer then
 * sleeps for up to a millisecond. That is longer than it takes to walk thousands of
 * zombies, and it is not what is measured here.
 */
static void wait_for_order(const sigset_t *order)
{
	while (sigwaitinfo(order, NULL) < 0 && errno == EINTR)
		;
}

__attribute__((noreturn)) static void run_parent(int answers, int64_t count, bool shared,
						 const char *cgroup)
{
	pid_t *pids = malloc((count + 1) * sizeof(*pids));
	sigset_t order;
	char path[256];
	cpu_set_t cpus;
	int64_t i;
	int error;

	if (!pids)
		answer(answers, FAILED, ENOMEM);
	sigemptyset(&order);
	sigaddset(&order, ORDER);
	sigprocmask(SIG_BLOCK, &order, NULL);
	if (cgroup) {
		snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
		error = write_file(path, "0");
		if (error)
			answer(answers, FAILED, -error);
	}
	stay_on_this_cpu(&cpus);
	for (i = 0; i < count; i++) {
		pids[i] = make_zombie(shared);
		if (pids[i] < 0)
			answer(answers, FAILED, errno);
		if (i % PROGRESS == PROGRESS - 1)
			answer(answers, MADE, i + 1);
	}
	sched_setaffinity(0, sizeof(cpus), &cpus);
	/* Without WNOHANG this also waits until the last of them has exited. */
	answer(answers, COUNTED, count_zombies(pids, count, 0));
	for (;;) {
		wait_for_order(&order);
		answer(answers, COUNTED, count_zombies(pids, count, WNOHANG));
	}
}

/* -- in the agent -- */

int zombie_parent_start(struct trial *t, struct zombie_parent *h, int64_t zombies, bool shared,
			const char *cgroup)
{
	int answers[2], error;
	struct answer a;

	memset(h, 0, sizeof(*h));
	error = raise_limits();
	if (error)
		return wl_fail(t, "cannot raise the limits on tasks: %s", strerror(-error));
	if (pipe(answers))
		return wl_fail(t, "cannot make a pipe: %m");
	h->pid = fork();
	if (h->pid < 0) {
		h->pid = 0;
		return wl_fail(t, "cannot fork: %m");
	}
	if (!h->pid) {
		close(answers[0]);
		run_parent(answers[1], zombies, shared, cgroup);
	}
	close(answers[1]);
	h->answers = answers[0];
	while (!read_all(h->answers, &a, sizeof(a))) {
		if (a.kind == COUNTED)
			return 0;
		if (a.kind == FAILED)
			return wl_fail(t, "cannot make zombies: %s", strerror(a.value));
		wl_alive(t, "%lld of %lld zombies", (long long)a.value, (long long)zombies);
	}
	return wl_fail(t, "the parent of the zombies died while it made them");
}

int64_t zombie_parent_count(struct zombie_parent *h)
{
	struct pollfd reply = {.fd = h->answers, .events = POLLIN};
	struct answer a;
	int error;

	if (kill(h->pid, ORDER))
		return -errno;
	if (poll(&reply, 1, ANSWER_MS) == 0)
		return -ETIMEDOUT;
	error = read_all(h->answers, &a, sizeof(a));
	return error ? error : a.value;
}

void zombie_parent_stop(struct zombie_parent *h)
{
	if (!h->pid)
		return;
	kill_and_reap_all(h->pid);
	close(h->answers);
	h->pid = 0;
}
