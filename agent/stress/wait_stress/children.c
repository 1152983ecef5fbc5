// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "children.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/applet.h"
#include "lib/tasks.h"

#define PROGRAM "wait_stress_child"

static _Noreturn void stay(void)
{
	for (;;)
		pause();
}

/* What a THREADED child executes. */
static int program(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	stay();
}
APPLET(wait_stress_child, program);

static int second_thread(void *arg)
{
	struct slot *slot = arg;

	slot->ready = true;
	start_barrier_wait(&slot->thread_executes);
	/* A first thread that has exited has no file, so not /proc/self/exe. */
	execl("/proc/thread-self/exe", PROGRAM, NULL);
	_exit(1);
}

static _Noreturn void be_threaded(struct slot *slot)
{
	static char stack[65536] __attribute__((aligned(16)));

	clone(second_thread, stack + sizeof(stack),
	      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
	      slot);
	start_barrier_wait(&slot->leader_exits);
	syscall(SYS_exit, 0);
	__builtin_unreachable();
}

static _Noreturn void be_parent(struct slot *slot)
{
	for (int i = 0; i < ORPHANS; i++) {
		pid_t pid = fork();

		if (!pid && i % 2)
			_exit(0);
		if (!pid)
			stay();
		if (pid < 0 || (i % 2 && !task_wait_state(pid, 'Z', LIMIT_MS)))
			_exit(1);
		slot->orphans[i] = pid;
	}
	slot->ready = true;
	stay();
}

static _Noreturn void be_child(enum kind kind, struct slot *slot)
{
	if (kind == THREADED)
		be_threaded(slot);
	if (kind == PARENT)
		be_parent(slot);
	slot->ready = true;
	stay();
}

pid_t child_make(enum kind kind, struct slot *slot, pid_t group)
{
	int64_t end = now_ns() + LIMIT_MS * 1000000LL;
	pid_t pid;

	memset(slot, 0, sizeof(*slot));
	pid = kind == CLONED ? (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0) : fork();
	if (!pid) {
		/* Before it has children or threads: those are in the group, too. */
		setpgid(0, group);
		be_child(kind, slot);
	}
	while (pid > 0 && !slot->ready) {
		if (now_ns() > end)
			return -1;
		sleep_ms(1);
	}
	return pid;
}

bool child_leader_exits(pid_t pid, struct slot *slot)
{
	start_barrier_open(&slot->leader_exits);
	return task_wait_state(pid, 'Z', LIMIT_MS);
}

bool child_thread_executes(pid_t pid, struct slot *slot)
{
	int64_t end = now_ns() + LIMIT_MS * 1000000LL;
	char path[64], name[32];

	start_barrier_open(&slot->thread_executes);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	while (read_file(path, name, sizeof(name)) <= 0 || strcmp(name, PROGRAM) != 0) {
		if (now_ns() > end)
			return false;
		sleep_ms(1);
	}
	/* Until it sleeps again: then de_thread() has released the former leader. */
	return task_wait_state(pid, 'S', LIMIT_MS);
}

/* -- helpers -- */

struct order {
	enum { MAKE, TRACE, INTERRUPT, EXIT } what;
	enum kind kind;
	pid_t pid; /* or a process group */
	struct slot *slot;
};

static void *helper_thread(void *arg)
{
	struct helper *h = arg;
	struct order o = {.what = EXIT};
	pid_t answer = (pid_t)syscall(SYS_gettid);

	do {
		if (write_all(h->answers[1], &answer, sizeof(answer)) ||
		    read_all(h->orders[0], &o, sizeof(o)))
			break;
		if (o.what == MAKE)
			answer = child_make(o.kind, o.slot, o.pid);
		else
			answer = (pid_t)ptrace(o.what == TRACE ? PTRACE_SEIZE : PTRACE_INTERRUPT,
					       o.pid, 0, 0);
	} while (o.what != EXIT);
	return NULL;
}

static pid_t ask(struct helper *h, const struct order *o)
{
	pid_t answer;

	if (o && write_all(h->orders[1], o, sizeof(*o)))
		return -1;
	return read_all(h->answers[0], &answer, sizeof(answer)) ? -1 : answer;
}

static bool start_thread(struct helper *h)
{
	pthread_t thread;

	return !pthread_create(&thread, NULL, helper_thread, h) && !pthread_detach(thread);
}

static _Noreturn void be_process(struct helper *h)
{
	pthread_t thread;

	while (!pthread_create(&thread, NULL, helper_thread, h))
		pthread_join(thread, NULL);
	_exit(1);
}

bool helper_start(struct helper *h, bool other_process)
{
	*h = (struct helper){0};
	if (pipe(h->orders) || pipe(h->answers))
		return false;
	if (other_process) {
		h->process = fork();
		if (!h->process)
			be_process(h);
		if (h->process < 0)
			return false;
	} else if (!start_thread(h)) {
		return false;
	}
	h->tid = ask(h, NULL);
	return h->tid > 0;
}

pid_t helper_makes(struct helper *h, enum kind kind, struct slot *slot, pid_t group)
{
	return ask(h, &(struct order){.what = MAKE, .kind = kind, .slot = slot, .pid = group});
}

bool helper_traces(struct helper *h, pid_t pid)
{
	return !ask(h, &(struct order){.what = TRACE, .pid = pid});
}

bool helper_interrupts(struct helper *h, pid_t pid)
{
	return !ask(h, &(struct order){.what = INTERRUPT, .pid = pid}) &&
	       task_wait_state(pid, 't', LIMIT_MS);
}

bool helper_renews(struct helper *h)
{
	int64_t end = now_ns() + LIMIT_MS * 1000000LL;
	struct order o = {.what = EXIT};
	pid_t old = h->tid;

	if (write_all(h->orders[1], &o, sizeof(o)))
		return false;
	/* It has given away its children and tracees when it is gone, and not yet when it is
	 * joined. */
	while (task_state(old)) {
		if (now_ns() > end)
			return false;
		sleep_ms(1);
	}
	if (!h->process && !start_thread(h))
		return false;
	h->tid = ask(h, NULL);
	return h->tid > 0;
}

void helper_stop(struct helper *h)
{
	if (h->process > 0) {
		kill(h->process, SIGKILL);
		waitpid(h->process, NULL, 0);
	}
	for (int i = 0; i < 2; i++) {
		close(h->orders[i]);
		close(h->answers[i]);
	}
}
