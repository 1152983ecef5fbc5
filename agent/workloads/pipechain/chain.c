// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* clone(), F_SETPIPE_SZ, close_range() */
#include "chain.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/applet.h"

/* File descriptors in the holder; a link keeps the first and the third. */
enum {
	CHAIN_LEFT, /* a link reads here; in the holder it is the end of the chain so far */
	CHAIN_NEXT, /* the reading end of a new pipe, for the next link */
	CHAIN_RIGHT, /* a link writes here */
	CHAIN_REST, /* a link has no descriptor from here on */
	CHAIN_ANSWERS = CHAIN_REST,
	CHAIN_ORDERS,
	CHAIN_HEAD, /* the writing end of the first pipe */
	CHAIN_LAST, /* the writing end of the last pipe, which is made first if links are nested */
	CHAIN_TAIL, /* the reading end of the last pipe */
};

/* A link that executes a program. */
#define CHAIN_PROGRAM "chain_program"

struct chain_answer {
	enum { CHAIN_DONE, CHAIN_PROGRESS, CHAIN_FAILED } kind;
	/* done: the order's result; progress: links made so far; failed: the error number */
	int64_t value;
};

/* Shared by the agent, the holder and, if they are nested, the links. */
struct chain_shared {
	struct chain_end end;
	pid_t group; /* of the links */
	pid_t agents_group; /* the group that the holder joins when all links are in theirs */
	int64_t made;
	char step[64]; /* the step that failed */
	pid_t pids[];
};

/* -- a link -- */

/*
 * A link may use only a few bytes of stack: it may share the memory of a hundred thousand
 * other links, including the thread-local variables of the C library. Therefore it makes
 * its system calls without the library.
 */

/* A link has no room for the memory that the sanitizers need. */
#define BARE __attribute__((no_sanitize("address", "undefined"), no_stack_protector))

BARE static inline long raw_syscall(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
	register long fourth __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long nr __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
			 x2 __asm__("x2") = c, x3 __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(nr), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
#else
#error "raw_syscall() has no code for this architecture"
#endif
}

__attribute__((noreturn)) BARE static void chain_link(bool used_pipes)
{
	int64_t token;
	struct iovec own = {&token, sizeof(token)};

	raw_syscall(SYS_close, CHAIN_NEXT, 0, 0, 0);
	raw_syscall(SYS_close_range, CHAIN_REST, ~0U, 0, 0);
	while (raw_syscall(SYS_read, CHAIN_LEFT, (long)&token, sizeof(token), 0) == sizeof(token)) {
		token++;
		/*
		 * After write() a pipe keeps a page for the next one; after vmsplice() of our page
		 * it does not.
		 */
		if (used_pipes)
			raw_syscall(SYS_write, CHAIN_RIGHT, (long)&token, sizeof(token), 0);
		else
			raw_syscall(SYS_vmsplice, CHAIN_RIGHT, (long)&own, 1, 0);
	}
	/*
	 * The left neighbour has been killed, and the signal to this link is on its way. An exit
	 * here would not be caused by the signal.
	 */
	for (;;)
		raw_syscall(SYS_ppoll, 0, 0, 0, 0);
}

static int chain_program(int argc, char **argv)
{
	chain_link(argc == 2 && !strcmp(argv[1], "used"));
}
APPLET(chain_program, chain_program);

/* -- reaping the links -- */

/* How the links' parent releases them; the parent is the holder or the agent. */

static void count(const struct chain_spec *spec, struct chain_end *end, const siginfo_t *info)
{
	if (info->si_code == CLD_KILLED && info->si_status == spec->signo)
		end->killed++;
}

/* By number: the kernel searches for one child only. */
static void reap_known(const struct chain_spec *spec, struct chain_shared *m)
{
	for (int64_t i = 0; i < spec->links; i++) {
		siginfo_t info;
		int64_t which = spec->reap == CHAIN_OLDEST ? i : spec->links - 1 - i;

		if (!waitid(P_PID, m->pids[which], &info, WEXITED))
			count(spec, &m->end, &info);
		else
			m->end.vanished++;
	}
}

static void reap_any(const struct chain_spec *spec, struct chain_shared *m)
{
	siginfo_t info;
	int64_t left = spec->links;

	/* Only children of the group: the agent has other children. */
	while (!waitid(P_PGID, m->group, &info, WEXITED)) {
		count(spec, &m->end, &info);
		left--;
	}
	m->end.vanished = left;
}

static void chain_reap_links(const struct chain_spec *spec, struct chain_shared *m)
{
	/*
	 * A nested link becomes our child when its parent dies, and cannot be waited for before
	 * that.
	 */
	if (spec->reap == CHAIN_ANY || spec->make == CHAIN_NESTED)
		reap_any(spec, m);
	else
		reap_known(spec, m);
	m->end.gone_ns = now_ns();
}

/* -- the holder -- */

/* The holder makes the links of a chain, proves that they are chained, and reaps them. */

#define PAGE 4096
/*
 * A link that shares the holder's memory calls no functions, and its system calls use the
 * kernel's stack.
 */
#define STACK 256
#define PROGRESS_NS 10000000000LL
#define LOOK_MS 1000
/* The time limit for the token: this, and a ms for each link. */
#define PROVE_MS 60000
/*
 * What the last nested link reports before the token comes: all links were made. A smaller
 * value is an error.
 */
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

/* The pipe gets the two lowest free numbers. Returns 0 or an error number. */
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
		fail("cannot mmap the stacks", errno);
	for (int64_t i = 0; i < spec->links; i++) {
		error = make_pipe();
		if (error)
			fail("cannot make a pipe", error);
		shared->pids[i] = make_link(stacks + (i + 1) * STACK);
		if (shared->pids[i] < 0)
			fail("cannot fork", errno);
		error = move(CHAIN_NEXT, CHAIN_LEFT);
		if (error)
			fail("cannot duplicate a descriptor", error);
		close(CHAIN_RIGHT);
		shared->made = i + 1;
		progress(shared->made);
	}
}

/* Called in a nested link: reports to the holder through the last pipe. */
static void nested_report(int64_t what)
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
			nested_report(NESTED_READY - (error ? error : errno));
		move(CHAIN_NEXT, CHAIN_LEFT);
		close(CHAIN_RIGHT);
	}
	shared->pids[spec->links - 1] = getpid();
	shared->made = spec->links;
	dup2(CHAIN_LAST, CHAIN_RIGHT);
	nested_report(NESTED_READY);
	chain_link(spec->used_pipes);
}

static void make_nested(void)
{
	int64_t reported;
	pid_t pid;
	int error;

	/* When the parent of a link dies first, the link becomes a child of the holder. */
	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		fail("cannot become a subreaper", errno);
	error = make_pipe();
	if (!error)
		error = move(CHAIN_RIGHT, CHAIN_LAST);
	if (!error)
		error = move(CHAIN_NEXT, CHAIN_TAIL);
	if (error)
		fail("cannot make a pipe", error);
	pid = fork();
	if (pid == 0)
		nested_links();
	if (pid < 0)
		fail("cannot fork", errno);
	close(CHAIN_LAST);
	error = move(CHAIN_TAIL, CHAIN_LEFT);
	if (error)
		fail("cannot duplicate a descriptor", error);
	if (read_all(CHAIN_LEFT, &reported, sizeof(reported)))
		fail("a nested link was killed before it could fork", ENOMEM);
	if (reported != NESTED_READY)
		fail("cannot fork a nested link", NESTED_READY - reported);
}

static void make_all(void)
{
	int error = make_pipe();
	int64_t start, made_ns;

	/* The two lowest numbers were free, so the reading end has the right number already. */
	if (!error)
		error = move(CHAIN_NEXT, CHAIN_HEAD);
	if (error)
		fail("cannot make a pipe", error);
	start = last_progress = now_ns();
	if (spec->make == CHAIN_NESTED)
		make_nested();
	else
		make_siblings();
	made_ns = now_ns() - start;
	/*
	 * The links inherit the group and the holder leaves it: this is cheaper than a setpgid()
	 * by each link.
	 */
	if (setpgid(0, shared->agents_group))
		fail("cannot change the process group", errno);
	answer(CHAIN_DONE, made_ns);
}

/* -- the token -- */

static bool link_died(void)
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
		fail("cannot write the token", -error);
	while (poll(&tail, 1, LOOK_MS) == 0) {
		if (link_died())
			fail("a link was killed before the signal", ENOMEM);
		if (now_ns() > end)
			fail("the token was lost", ETIMEDOUT);
		progress(0);
	}
	error = read_all(CHAIN_LEFT, &token, sizeof(token));
	if (error)
		fail("cannot read the token", -error);
	answer(CHAIN_DONE, token);
}

/* -- reaping -- */

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

__attribute__((noreturn)) static void chain_hold(const struct chain_spec *wanted,
						 struct chain_shared *memory)
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

/* -- in the agent -- */

#define ALIVE_MS 10000

static size_t shared_size(const struct chain *c)
{
	return sizeof(struct chain_shared) + c->spec.links * sizeof(pid_t);
}

/* -- in the holder -- */

/* Moves the two descriptors to their numbers and closes everything else. */
static int keep_only(int orders, int answers)
{
	/* First to numbers that the following dup2() calls do not overwrite. */
	orders = fcntl(orders, F_DUPFD, CHAIN_TAIL + 1);
	answers = fcntl(answers, F_DUPFD, CHAIN_TAIL + 1);
	if (orders < 0 || answers < 0)
		return -1;
	if (dup2(orders, CHAIN_ORDERS) < 0 || dup2(answers, CHAIN_ANSWERS) < 0)
		return -1;
	return close_range(0, CHAIN_REST - 1, 0) || close_range(CHAIN_HEAD, ~0U, 0) ? -1 : 0;
}

__attribute__((noreturn)) static void run_holder(const struct chain *c, int orders, int answers)
{
	if (setpgid(0, 0) || keep_only(orders, answers))
		_exit(EXIT_FAILURE);
	chain_hold(&c->spec, c->shared);
}

/* -- in the agent -- */

static int fork_holder(struct trial *t, struct chain *c)
{
	int orders[2], answers[2];

	if (pipe2(orders, O_CLOEXEC))
		return wl_fail(t, "cannot make a pipe: %m");
	if (pipe2(answers, O_CLOEXEC)) {
		close(orders[0]);
		close(orders[1]);
		return wl_fail(t, "cannot make a pipe: %m");
	}
	c->orders = orders[1];
	c->answers = answers[0];
	c->holder = fork();
	if (c->holder == 0)
		run_holder(c, orders[0], answers[1]);
	close(orders[0]);
	close(answers[1]);
	if (c->holder < 0) {
		close(c->orders);
		close(c->answers);
		c->holder = 0;
		return wl_fail(t, "cannot fork the holder of the chain: %m");
	}
	c->group = c->shared->group = c->holder;
	return 0;
}

int chain_open(struct trial *t, struct chain *c, const struct chain_spec *spec)
{
	*c = (struct chain){.spec = *spec};
	c->shared = mmap(NULL, shared_size(c), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			 -1, 0);
	if (c->shared == MAP_FAILED) {
		c->shared = NULL;
		return wl_fail(t, "cannot mmap memory for %lld process numbers: %m",
			       (long long)spec->links);
	}
	/* The kernel starts its first process in group 0, which no process can join. */
	if (getpgrp() == 0 && setpgid(0, 0))
		return wl_fail(t, "cannot make a process group: %m");
	c->shared->agents_group = getpgrp();
	return fork_holder(t, c);
}

/* Waits for the answer to an order; reports progress meanwhile. */
static int await(struct trial *t, struct chain *c, int64_t *value)
{
	struct pollfd reply = {.fd = c->answers, .events = POLLIN};
	struct chain_answer a;

	for (;;) {
		long long made, links = c->spec.links;
		int ready = poll(&reply, 1, ALIVE_MS);

		made = c->shared->made;
		if (ready == 0) {
			wl_alive(t, "%lld of %lld links made", made, links);
			continue;
		}
		if (read_all(c->answers, &a, sizeof(a)))
			return wl_fail(t,
				       "the holder of the chain died; %lld of %lld links were made",
				       made, links);
		if (a.kind == CHAIN_DONE)
			break;
		if (a.kind == CHAIN_FAILED)
			return wl_fail(t, "%s: %s; %lld of %lld links were made", c->shared->step,
				       strerror(a.value), made, links);
		wl_alive(t, "%lld of %lld links made", made, links);
	}
	*value = a.value;
	return 0;
}

static int order(struct trial *t, struct chain *c, char what, int64_t *value)
{
	int error = write_all(c->orders, &what, 1);

	if (error)
		return wl_fail(t, "cannot send an order to the holder of the chain: %s",
			       strerror(-error));
	return await(t, c, value);
}

int chain_make(struct trial *t, struct chain *c, int64_t *create_ns)
{
	return order(t, c, 'm', create_ns);
}

int chain_prove(struct trial *t, struct chain *c, int64_t *passed)
{
	return order(t, c, 'p', passed);
}

int chain_reap(struct trial *t, struct chain *c)
{
	int64_t none;
	int status;

	if (order(t, c, 'r', &none))
		return -1;
	if (!c->spec.orphans)
		return 0;
	if (waitpid(c->holder, &status, 0) != c->holder || status)
		return wl_fail(t, "the holder did not leave its links to the agent");
	c->holder = 0;
	if (c->spec.reap == CHAIN_IGNORE)
		signal(SIGCHLD, SIG_IGN);
	return 0;
}

int chain_gone(struct trial *t, struct chain *c, struct chain_end *end)
{
	int64_t none;

	if (c->spec.orphans) {
		chain_reap_links(&c->spec, c->shared);
		signal(SIGCHLD, SIG_DFL);
	} else if (await(t, c, &none)) {
		return -1;
	}
	*end = c->shared->end;
	return 0;
}

void chain_close(struct chain *c)
{
	if (c->group) {
		kill(-c->group, SIGKILL);
		kill_and_reap_all(c->holder);
		close(c->orders);
		close(c->answers);
	}
	if (c->shared)
		munmap(c->shared, shared_size(c));
	*c = (struct chain){0};
}
