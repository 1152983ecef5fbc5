// SPDX-License-Identifier: GPL-2.0
/* The process that makes the links of a chain, proves that it is one, and reaps it. */
#define _GNU_SOURCE /* clone(), F_SETPIPE_SZ, close_range() */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chain_parts.h"

#define PAGE 4096
/* A link that shares the holder's memory calls no function; its system calls use the kernel's
 * stack. */
#define STACK 256
#define PROGRESS_NS 10000000000LL
#define LOOK_MS 1000
/* For the token: this and a ms for each link. */
#define PROVE_MS 60000
/* What the last of nested links says before any token comes: all were made. Less: an error. */
#define NESTED_READY (-1)

static const struct chain_spec *spec;
static struct chain_shared *shared;
static int64_t last_progress;

static void answer(int kind, int64_t value)
{
	struct chain_answer a = {.kind = kind, .value = value};

	if (write_all(CHAIN_ANSWERS, &a, sizeof(a)) || kind == CHAIN_FAILED)
		_exit(EXIT_FAILURE);
}

__attribute__((noreturn)) static void fail(const char *step, int error)
{
	strncpy(shared->step, step, sizeof(shared->step) - 1);
	answer(CHAIN_FAILED, error);
	_exit(EXIT_FAILURE);
}

static void progress(int64_t value)
{
	int64_t now = now_ns();

	if (now - last_progress < PROGRESS_NS)
		return;
	last_progress = now;
	answer(CHAIN_PROGRESS, value);
}

/* To the two lowest free numbers; 0 or an error number. */
static int make_pipe(void)
{
	int ends[2];

	if (pipe(ends))
		return errno;
	if (!spec->used_pipes && fcntl(ends[1], F_SETPIPE_SZ, PAGE) < 0)
		return errno;
	return 0;
}

static int move(int from, int to)
{
	if (dup2(from, to) < 0)
		return errno;
	close(from);
	return 0;
}

/* -- ways to make a link -- */

static int shared_link(void *unused)
{
	(void)unused;
	chain_link(spec->used_pipes);
}

static pid_t make_link(char *stack_end)
{
	pid_t pid;

	if (spec->make == CHAIN_SHARED)
		return clone(shared_link, stack_end, CLONE_VM | CLONE_FS | CLONE_SIGHAND | SIGCHLD,
			     NULL);
	pid = fork();
	if (pid == 0 && spec->make == CHAIN_EXEC)
		execl("/proc/self/exe", CHAIN_PROGRAM, spec->used_pipes ? "used" : NULL, NULL);
	if (pid == 0)
		chain_link(spec->used_pipes);
	return pid;
}

static void make_siblings(void)
{
	size_t size = spec->make == CHAIN_SHARED ? spec->links * STACK : PAGE;
	char *stacks = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int error;

	if (stacks == MAP_FAILED)
		fail("mmap of the stacks", errno);
	for (int64_t i = 0; i < spec->links; i++) {
		error = make_pipe();
		if (error)
			fail("pipe", error);
		shared->pids[i] = make_link(stacks + (i + 1) * STACK);
		if (shared->pids[i] < 0)
			fail("fork", errno);
		error = move(CHAIN_NEXT, CHAIN_LEFT);
		if (error)
			fail("dup2", error);
		close(CHAIN_RIGHT);
		shared->made = i + 1;
		progress(shared->made);
	}
}

/* In a nested link: tell the holder through the last pipe. */
static void nested_say(int64_t what)
{
	write_all(CHAIN_LAST, &what, sizeof(what));
}

__attribute__((noreturn)) static void nested_links(void)
{
	for (int64_t i = 0; i < spec->links - 1; i++) {
		int error = make_pipe();
		pid_t pid;

		shared->pids[i] = getpid();
		shared->made = i + 1;
		pid = error ? -1 : fork();
		if (pid > 0)
			chain_link(spec->used_pipes);
		if (pid < 0)
			nested_say(NESTED_READY - (error ? error : errno));
		move(CHAIN_NEXT, CHAIN_LEFT);
		close(CHAIN_RIGHT);
	}
	shared->pids[spec->links - 1] = getpid();
	shared->made = spec->links;
	dup2(CHAIN_LAST, CHAIN_RIGHT);
	nested_say(NESTED_READY);
	chain_link(spec->used_pipes);
}

static void make_nested(void)
{
	int64_t said;
	pid_t pid;
	int error;

	/* Where a link's parent dies first, the link becomes the holder's child. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		fail("prctl", errno);
	error = make_pipe();
	if (!error)
		error = move(CHAIN_RIGHT, CHAIN_LAST);
	if (!error)
		error = move(CHAIN_NEXT, CHAIN_TAIL);
	if (error)
		fail("pipe", error);
	pid = fork();
	if (pid == 0)
		nested_links();
	if (pid < 0)
		fail("fork", errno);
	close(CHAIN_LAST);
	error = move(CHAIN_TAIL, CHAIN_LEFT);
	if (error)
		fail("dup2", error);
	if (read_all(CHAIN_LEFT, &said, sizeof(said)))
		fail("a nested link was killed before it could fork", ENOMEM);
	if (said != NESTED_READY)
		fail("fork of a nested link", NESTED_READY - said);
}

static void make_all(void)
{
	int error = make_pipe();
	int64_t start, made_ns;

	/* The two lowest numbers were free: the reading end is in its place already. */
	if (!error)
		error = move(CHAIN_NEXT, CHAIN_HEAD);
	if (error)
		fail("pipe", error);
	start = last_progress = now_ns();
	if (spec->make == CHAIN_NESTED)
		make_nested();
	else
		make_siblings();
	made_ns = now_ns() - start;
	/* Links inherit the group, the holder leaves it: cheaper than each joining one. */
	if (setpgid(0, shared->agents_group))
		fail("setpgid", errno);
	answer(CHAIN_DONE, made_ns);
}

/* -- the token -- */

static bool somebody_died(void)
{
	siginfo_t info = {0};

	return !waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

static void prove(void)
{
	struct pollfd tail = {.fd = CHAIN_LEFT, .events = POLLIN};
	int64_t token = 0, end = now_ns() + (PROVE_MS + spec->links) * 1000000;
	int error = write_all(CHAIN_HEAD, &token, sizeof(token));

	if (error)
		fail("writing the token", -error);
	while (poll(&tail, 1, LOOK_MS) == 0) {
		if (somebody_died())
			fail("a link was killed before the signal", ENOMEM);
		if (now_ns() > end)
			fail("the token was lost", ETIMEDOUT);
		progress(0);
	}
	error = read_all(CHAIN_LEFT, &token, sizeof(token));
	if (error)
		fail("reading the token", -error);
	answer(CHAIN_DONE, token);
}

/* -- the end -- */

static void reap_all(void)
{
	if (spec->reap == CHAIN_IGNORE)
		signal(SIGCHLD, SIG_IGN);
	answer(CHAIN_DONE, 0);
	if (spec->orphans)
		_exit(EXIT_SUCCESS);
	chain_reap_links(spec, shared);
	answer(CHAIN_DONE, 0);
}

void chain_hold(const struct chain_spec *wanted, struct chain_shared *memory)
{
	char order;

	spec = wanted;
	shared = memory;
	while (!read_all(CHAIN_ORDERS, &order, 1)) {
		if (order == 'm')
			make_all();
		else if (order == 'p')
			prove();
		else
			reap_all();
	}
	_exit(EXIT_SUCCESS);
}
