// SPDX-License-Identifier: GPL-2.0
/*
 * A job of a shell is killed: a process, and the processes that it made and chained by pipes. All
 * are in one process group and in a session of their own. Their parent dies with them, so another
 * process, which is in none of the two, becomes the parent of all and waits for any of them.
 *
 *	waiter          PID 1, or a subreaper: kills the job, and waits for any child until none is
 *left maker         leads the session and the group; makes the links link        reads from the
 *pipe of the link before it, writes to its own pipe link ...
 */
#define _GNU_SOURCE /* clone(), close_range(), F_SETPIPE_SZ, vmsplice() */
#include <errno.h>
#include <fcntl.h>
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

#include "lib/latency_probe.h"
#include "workload.h"

#define SETTLE_MS 50
#define ALIVE_NS 10000000000LL
#define PAGE 4096
/* A link that shares the maker's memory uses its stack for a few calls that only wrap a system
 * call. */
#define STACK 512

/* Descriptors of the maker; a link keeps the first and the third. */
enum {
	LEFT = 10, /* the reading end of the last pipe so far */
	NEXT, /* the reading end of a new pipe */
	RIGHT, /* the writing end of a new pipe */
	REST, /* a link has no descriptor from here on */
	HEAD = REST, /* the writing end of the first pipe */
	READY, /* the maker tells here that its job is complete */
};

enum order { GROUP, OLDEST, YOUNGEST, RANDOM };

struct job {
	int64_t links;
	bool shared; /* the links share the memory of the maker */
	int signo;
	enum order order;

	/* In memory that all processes share: */
	struct {
		int64_t made;
		int64_t create_ns;
		int error; /* of the maker, or of the waiter */
		int64_t start_ns, signalled_ns, gone_ns;
		int64_t killed; /* links that died of the signal */
		pid_t maker;
		pid_t pids[]; /* of the links, the oldest first */
	} * now;
};

static struct job job;
static pid_t waiter; /* 0: the agent */

/* -- links -- */

/*
 * Other links may use the same memory, among it the thread-local variables of the C library. So a
 * link calls nothing that keeps state there, except errno, which it never reads.
 */
#define BARE __attribute__((no_sanitize("address", "undefined"), no_stack_protector))

__attribute__((noreturn)) BARE static void pass_tokens(void)
{
	int64_t token;
	struct iovec text = {&token, sizeof(token)};

	syscall(SYS_close, NEXT);
	syscall(SYS_close_range, REST, ~0U, 0);
	/* After write() the pipe would keep a page; the page of vmsplice() is this stack's. */
	while (syscall(SYS_read, LEFT, &token, sizeof(token)) == sizeof(token)) {
		token++;
		syscall(SYS_vmsplice, RIGHT, &text, 1, 0);
	}
	/* The link before it is gone, and the signal to this one is on its way. */
	for (;;)
		syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
}

BARE static int link_main(void *unused)
{
	(void)unused;
	pass_tokens();
}

/* -- the maker -- */

static int make_pipe(void)
{
	int ends[2];

	if (pipe(ends) || fcntl(ends[1], F_SETPIPE_SZ, PAGE) < 0)
		return errno;
	if (dup2(ends[0], NEXT) < 0 || dup2(ends[1], RIGHT) < 0)
		return errno;
	close(ends[0]);
	close(ends[1]);
	return 0;
}

/* The pipe that is read next is the last one that was made. */
static int move_on(int keep_writing_end)
{
	if (dup2(NEXT, LEFT) < 0 || (keep_writing_end && dup2(RIGHT, keep_writing_end) < 0))
		return errno;
	close(NEXT);
	close(RIGHT);
	return 0;
}

/*
 * Only a link that shares the memory of the maker has a stack of the maker's: with one for each
 * fork, every process would have the pages of all stacks before its own.
 */
static pid_t make_link(char *stack_end)
{
	pid_t pid;

	if (job.shared)
		return clone(link_main, stack_end, CLONE_VM | CLONE_FS | CLONE_SIGHAND | SIGCHLD,
			     NULL);
	pid = fork();
	if (!pid)
		pass_tokens();
	return pid;
}

static int make_links(void)
{
	size_t size = job.shared ? (size_t)job.links * STACK : PAGE;
	char *stacks = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int error = stacks == MAP_FAILED ? errno : make_pipe();

	error = error ? error : move_on(HEAD);
	for (int64_t i = 0; i < job.links && !error; i++) {
		pid_t pid;

		error = make_pipe();
		if (error)
			break;
		pid = make_link(job.shared ? stacks + (i + 1) * STACK : NULL);
		if (pid < 0)
			return errno;
		job.now->pids[i] = pid;
		job.now->made = i + 1;
		error = move_on(0);
	}
	return error;
}

/* A token passes through all links. */
static int prove(void)
{
	int64_t token = 0;

	if (write_all(HEAD, &token, sizeof(token)) || read_all(LEFT, &token, sizeof(token)))
		return EPIPE;
	return token == job.links ? 0 : EPROTO;
}

__attribute__((noreturn)) static void maker_main(int ready)
{
	int64_t start = now_ns();
	char done = 0;

	setsid();
	/* The descriptors of the agent are not inherited by the links. */
	if (dup2(ready, READY) < 0 || close_range(0, LEFT - 1, 0) || close_range(READY + 1, ~0U, 0))
		job.now->error = errno;
	if (!job.now->error)
		job.now->error = make_links();
	job.now->create_ns = now_ns() - start;
	if (!job.now->error)
		job.now->error = prove();
	write_all(READY, &done, 1);
	for (;;)
		pause();
}

/* -- the waiter -- */

/* Whether one more child of the job was reaped. Other children of PID 1 do not exit meanwhile. */
static bool reap_any(void)
{
	siginfo_t info;

	if (waitid(P_ALL, 0, &info, WEXITED))
		return false;
	if (info.si_pid != job.now->maker)
		job.now->killed += info.si_code == CLD_KILLED && info.si_status == job.signo;
	return true;
}

static void shuffle(void)
{
	struct prng random = {.state = 1};

	for (int64_t i = job.links - 1; i > 0; i--) {
		int64_t other = (int64_t)prng_below(&random, (uint64_t)i + 1);
		pid_t pid = job.now->pids[i];

		job.now->pids[i] = job.now->pids[other];
		job.now->pids[other] = pid;
	}
}

/* The maker dies first. Then each link is killed, and reaped before the next is killed. */
static int kill_one_by_one(void)
{
	if (kill(job.now->maker, job.signo) || !reap_any())
		return -1;
	job.now->signalled_ns = now_ns();
	for (int64_t i = 0; i < job.links; i++) {
		int64_t which = job.order == YOUNGEST ? job.links - 1 - i : i;

		if (kill(job.now->pids[which], job.signo) || !reap_any())
			return -1;
	}
	return 0;
}

static int kill_group(void)
{
	if (kill(-job.now->maker, job.signo))
		return -1;
	job.now->signalled_ns = now_ns();
	for (int64_t left = job.links + 1; left; left--)
		if (!reap_any())
			return -1;
	return 0;
}

static void tear_down(void)
{
	if (job.order == RANDOM)
		shuffle();
	job.now->start_ns = now_ns();
	if (job.order == GROUP ? kill_group() : kill_one_by_one())
		job.now->error = errno;
	job.now->gone_ns = now_ns();
}

static int start_maker(int ready)
{
	pid_t maker = fork();

	if (!maker)
		maker_main(ready);
	job.now->maker = maker;
	return maker < 0 ? errno : 0;
}

__attribute__((noreturn)) static void waiter_main(int ready, int go)
{
	char order, failed = 1;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		job.now->error = errno;
	if (!job.now->error)
		job.now->error = start_maker(ready);
	if (job.now->error)
		write_all(ready, &failed, 1);
	else if (!read_all(go, &order, 1))
		tear_down();
	_exit(0);
}

/* -- the agent -- */

static size_t shared_bytes(void)
{
	return sizeof(*job.now) + (size_t)job.links * sizeof(job.now->pids[0]);
}

static int setup(struct trial *t)
{
	static const char *const orders[] = {"group", "oldest", "youngest", "random", NULL};
	int error = raise_limits();

	job = (struct job){
		.links = wl_param_int(t, "processes"),
		.shared = !strcmp(wl_param_str(t, "make"), "shared"),
		.signo = strcmp(wl_param_str(t, "signal"), "int") ? SIGKILL : SIGINT,
		.order = (enum order)wl_param_choice(t, "killed", orders),
	};
	waiter = 0;
	job.now = mmap(NULL, shared_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		       0);
	if (job.now == MAP_FAILED)
		job.now = NULL;
	if (error || !job.now)
		return wl_fail(t, "cannot prepare: %s", strerror(error ? -error : ENOMEM));
	return 0;
}

/* Waits until the job is complete: the maker is the last process that could close the pipe. */
static int await_job(struct trial *t, int ready)
{
	int64_t told_ns = now_ns();
	char done;

	fcntl(ready, F_SETFL, O_NONBLOCK);
	while (read(ready, &done, 1) < 0 && errno == EAGAIN) {
		sleep_ms(10);
		if (now_ns() - told_ns < ALIVE_NS)
			continue;
		told_ns = now_ns();
		wl_alive(t, "%lld of %lld processes made", (long long)job.now->made,
			 (long long)job.links);
	}
	if (!job.now->error && job.now->made == job.links)
		return 0;
	return wl_fail(t, "%lld of %lld processes were made: %s", (long long)job.now->made,
		       (long long)job.links, strerror(job.now->error));
}

static int make(struct trial *t, int *go)
{
	bool subreaper = !strcmp(wl_param_str(t, "waiter"), "subreaper");
	int ready[2], orders[2], error = 0;

	if (pipe2(ready, O_CLOEXEC) || pipe2(orders, O_CLOEXEC))
		return wl_fail(t, "cannot make a pipe: %m");
	if (subreaper) {
		waiter = fork();
		if (!waiter)
			waiter_main(ready[1], orders[0]);
		error = waiter < 0 ? errno : 0;
	} else {
		error = start_maker(ready[1]);
	}
	close(ready[1]);
	close(orders[0]);
	*go = orders[1];
	if (error) {
		close(ready[0]);
		return wl_fail(t, "cannot fork: %s", strerror(error));
	}
	error = await_job(t, ready[0]);
	close(ready[0]);
	return error;
}

/* Lets the waiter tear the job down, and returns when nothing of it is left. */
static int await_end(struct trial *t, int go)
{
	int status;

	if (!waiter) {
		tear_down();
	} else if (write_all(go, "g", 1) || waitpid(waiter, &status, 0) != waiter) {
		return wl_fail(t, "the subreaper does not answer");
	} else {
		waiter = 0;
	}
	return job.now->error ? wl_fail(t, "cannot kill or reap: %s", strerror(job.now->error)) : 0;
}

static void report(struct trial *t, const struct probe_results *seen)
{
	wl_sample(t, "create_ns", job.now->create_ns);
	wl_sample(t, "signal_ns", job.now->signalled_ns - job.now->start_ns);
	wl_sample(t, "teardown_ns", job.now->gone_ns - job.now->start_ns);
	if (seen) {
		wl_sample(t, "unusable_ns", seen->longest_ns);
		wl_sample(t, "realtime_gap_ns", seen->realtime_ns);
	}
	wl_check(t, "killed", job.now->killed == job.links, "%lld of %lld died of the signal",
		 (long long)job.now->killed, (long long)job.links);
	wl_check(t, "none_left", kill(-job.now->maker, 0) && errno == ESRCH, "process group %d",
		 (int)job.now->maker);
}

static int run(struct trial *t)
{
	struct probe_spec probes = {.any = !strcmp(wl_param_str(t, "probes"), "all")};
	struct probe_results seen;
	int go = -1, error;

	memset(job.now, 0, shared_bytes());
	if (make(t, &go) || latency_probes_start(t, &probes))
		return -1;
	wl_settle(t, SETTLE_MS);
	latency_probes_from();
	wl_profile_begin(t);
	error = await_end(t, go);
	wl_profile_end(t);
	close(go);
	if (error || latency_probes_stop(t, job.now->gone_ns, &seen))
		return -1;
	report(t, probes.any ? &seen : NULL);
	return 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	latency_probes_drop();
	if (!job.now)
		return;
	if (job.now->maker > 0)
		kill(-job.now->maker, SIGKILL);
	kill_and_reap_all(waiter);
	munmap(job.now, shared_bytes());
}

static const char *const params[] = {"processes", "make",   "waiter", "signal",
				     "killed",	  "probes", NULL};
static const struct workload pipejob = {
	.name = "pipejob",
	.summary =
		"kill a job of many processes that are chained by pipes, and their parent with it",
	.params = params,
	.stretch = "from the signal until the last process is reaped",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(pipejob);
