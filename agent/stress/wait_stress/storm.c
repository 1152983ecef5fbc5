// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "storm.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tasks.h"

#define ROOTS 4
#define DEPTH 3
#define LIVE_MAX 8
#define PAUSED_MAX 3
#define LIMIT_MS 30000

static struct storm_shared {
	_Atomic int64_t born, reported, wrong;
	volatile bool stop;
} * shared;

/* A process of the storm. */
struct node {
	struct prng prng;
	int depth, live, paused;
	pid_t pids[PAUSED_MAX];
};

static void be_node(int depth, uint64_t seed);

static int below(struct node *n, int bound)
{
	return (int)prng_below(&n->prng, (uint64_t)bound);
}

/* Its first thread has exited when it does. */
static int last_thread(void *arg)
{
	(void)arg;
	for (int i = 0; i < 3; i++)
		sched_yield();
	syscall(SYS_exit, 0);
	return 0;
}

static void exit_before_thread(void)
{
	static char stack[16384] __attribute__((aligned(16)));

	clone(last_thread, stack + sizeof(stack),
	      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
	      NULL);
	syscall(SYS_exit, 0);
}

static void grow(struct node *n)
{
	int what = below(n, 6);
	uint64_t seed = prng_next(&n->prng);
	pid_t pid = fork();

	if (!pid) {
		if (what == 0 && n->depth < DEPTH)
			be_node(n->depth + 1, seed);
		if (what == 1 && n->paused < PAUSED_MAX)
			for (;;)
				pause();
		if (what == 2)
			exit_before_thread();
		_exit(0);
	}
	if (pid < 0)
		return;
	shared->born++;
	n->live++;
	if (what == 1 && n->paused < PAUSED_MAX)
		n->pids[n->paused++] = pid;
}

static void kill_paused(struct node *n)
{
	while (n->paused > 0)
		kill(n->pids[--n->paused], SIGKILL);
}

static void reaped(struct node *n, bool ok)
{
	if (!ok) {
		shared->wrong++;
		return;
	}
	n->live--;
	shared->reported++;
}

static void reap(struct node *n)
{
	siginfo_t info = {0};
	pid_t pid;

	if (n->live >= LIVE_MAX || below(n, 4) == 0) {
		kill_paused(n);
		if (n->live > 0)
			reaped(n, waitpid(-1, NULL, 0) > 0);
		return;
	}
	if (below(n, 2)) {
		pid = waitpid(-1, NULL, WNOHANG);
		if (pid > 0)
			reaped(n, true);
		else if (pid ? n->live || errno != ECHILD : !n->live)
			shared->wrong++;
		return;
	}
	/* As systemd does. */
	if (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid)
		reaped(n,
		       !waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG) && info.si_pid);
}

/* Leaves children, some of which have exited. */
static void be_node(int depth, uint64_t seed)
{
	struct node n = {.prng = {seed}, .depth = depth};
	int rounds = 4 + below(&n, 8);

	while (!shared->stop && (depth == 0 || rounds-- > 0)) {
		grow(&n);
		reap(&n);
	}
	kill_paused(&n);
	_exit(0);
}

static void *reap_orphans(void *arg)
{
	(void)arg;
	for (;;) {
		if (waitpid(-1, NULL, __WALL) > 0)
			shared->reported++;
		else if (errno == ECHILD)
			return NULL;
	}
}

/* The subreaper of all, which waits with two threads. */
static _Noreturn void be_top(uint64_t seed)
{
	struct prng prng = {seed};
	pthread_t thread;

	setpgid(0, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < ROOTS; i++) {
		uint64_t its = prng_next(&prng);

		if (!fork())
			be_node(0, its);
		shared->born++;
	}
	if (pthread_create(&thread, NULL, reap_orphans, NULL))
		_exit(1);
	reap_orphans(NULL);
	pthread_join(thread, NULL);
	_exit(0);
}

int storm(struct trial *t, int64_t ms, uint64_t seed)
{
	int status;
	pid_t top;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return wl_fail(t, "mmap: %m");
	top = fork();
	if (!top)
		be_top(seed);
	if (top < 0)
		return wl_fail(t, "fork: %m");
	setpgid(top, top);
	sleep_ms(ms);
	shared->stop = true;
	status = task_reap(top, LIMIT_MS);
	wl_check(t, "each_once", status == 0 && shared->born == shared->reported && !shared->wrong,
		 "%lld processes, %lld reported, %lld calls wrong, status %d",
		 (long long)shared->born, (long long)shared->reported, (long long)shared->wrong,
		 status);
	wl_sample(t, "storm_count", shared->born);
	kill(-top, SIGKILL);
	wl_check(t, "storm_gone", group_reap(top, LIMIT_MS), "%s", "");
	munmap(shared, sizeof(*shared));
	return 0;
}
