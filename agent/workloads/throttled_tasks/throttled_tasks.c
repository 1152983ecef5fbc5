// SPDX-License-Identifier: GPL-2.0
/*
 * What does it cost to throttle a group, and to unthrottle it, for one more runnable task in it?
 *
 * All tasks of the group spin in user space on one CPU, and write down when they last did. An
 * observer outside of the group spins on the same CPU. It is a SCHED_IDLE task beside a group of
 * the largest weight, so it runs when no task of the group can:
 *
 *	tasks spin | throttle_ns | the observer spins | unthrottle_ns | tasks spin
 *
 * Not every kernel preempts the observer at once when the group gets new quota. So what the
 * unthrottling costs is the longest stretch, from when the observer begins to spin until a task
 * does, in which nobody is in user space.
 */
#define _GNU_SOURCE /* SCHED_IDLE */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/bandwidth.h"
#include "lib/cgroup.h"
#include "lib/kmsg.h"
#include "lib/start_barrier.h"

#define GROUP CGROUP_ROOT "throttled"
#define PERIOD_US 100000
#define PERCENT_US (PERIOD_US / 100)
#define STACK_BYTES (64 << 10)
/* A task that did not run for so long was off the CPU: no interrupt handler takes as long. */
#define OFF_CPU_NS 20000000
#define START_MS 60000
#define SETTLE_MS 20
#define GONE_MS 60000
#define REMOVE_MS 10000
#define LOOK_MS 5000
/* The first periods: the tasks come from the barrier, and caches of the kernel are empty. */
#define SKIPPED 2
#define MOST_PERIODS 1000

struct stretch {
	int64_t throttle_ns, unthrottle_ns;
};

/* What all processes share. One CPU runs them, so no two of them write at once. */
static struct shared {
	_Atomic int64_t ready;
	struct start_barrier go;
	/* When tasks of the group were first (0: not yet) and last seen after the observer. */
	volatile int64_t first_ns, last_ns;
	volatile int64_t seen;
	struct stretch stretches[MOST_PERIODS + SKIPPED];
} * shared;

static int64_t tasks, wanted, least_window_ns;
static struct bandwidth limit;
static pid_t group, observer;
static int log_fd;

/* -- in the processes -- */

/*
 * A task that is preempted between reading the clock and writing the time down writes an old
 * time. So the first time comes only from a task that sees that it was off the CPU, and the last
 * time is written again at once.
 */
static void *spin(void *unused)
{
	int64_t before_ns = 0, ns;

	shared->ready++;
	start_barrier_wait(&shared->go);
	for (;;) {
		ns = now_ns();
		if (ns - before_ns > OFF_CPU_NS && !shared->first_ns)
			shared->first_ns = ns;
		shared->last_ns = before_ns = ns;
	}
	return unused;
}

static bool on_last_cpu(void)
{
	return !stay_on_cpu((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
}

__attribute__((noreturn)) static void run_group(void)
{
	pthread_attr_t attributes;
	pthread_t id;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!on_last_cpu() || cgroup_enter(GROUP))
		_exit(EXIT_FAILURE);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (int64_t i = 0; i < tasks; i++)
		if (pthread_create(&id, &attributes, spin, NULL))
			_exit(EXIT_FAILURE);
	for (;;)
		pause();
}

static void lengthen(struct stretch *now, int64_t ns)
{
	if (ns > now->unthrottle_ns)
		now->unthrottle_ns = ns;
}

/*
 * A window is the time in which the observer runs and no task of the group does. A short window
 * is none in which the group is throttled. The tasks may run between any two lines here, so the
 * clock is read once more after they were seen.
 */
static void observe(void)
{
	int64_t before_ns = now_ns(), window_ns = before_ns, ns;
	struct stretch now = {0};

	for (;;) {
		ns = now_ns();
		if (!shared->first_ns) {
			lengthen(&now, ns - before_ns);
			before_ns = ns;
			continue;
		}
		ns = now_ns();
		if (ns < shared->last_ns)
			continue;
		lengthen(&now, shared->first_ns - before_ns);
		if (before_ns - window_ns >= least_window_ns &&
		    shared->seen < MOST_PERIODS + SKIPPED)
			shared->stretches[shared->seen++] = now;
		now = (struct stretch){.throttle_ns = ns - shared->last_ns};
		shared->first_ns = 0;
		window_ns = before_ns = ns;
	}
}

__attribute__((noreturn)) static void run_observer(void)
{
	struct sched_param param = {0};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!on_last_cpu() || sched_setscheduler(0, SCHED_IDLE, &param))
		_exit(EXIT_FAILURE);
	shared->ready++;
	start_barrier_wait(&shared->go);
	observe();
	_exit(EXIT_FAILURE);
}

/* -- in the agent -- */

static bool is_gone(pid_t *pid)
{
	if (waitpid(*pid, NULL, WNOHANG) != *pid)
		return false;
	*pid = 0;
	return true;
}

static pid_t start_process(void (*body)(void))
{
	pid_t pid = fork();

	if (pid == 0)
		body();
	return pid;
}

static int start(struct trial *t)
{
	int64_t end = now_ns() + START_MS * 1000000LL;
	int error = cgroup_make(GROUP);

	if (!error)
		error = write_file(GROUP "/cpu.weight", "10000");
	if (error)
		return wl_fail(t, "cannot make " GROUP ": %s", strerror(-error));
	memset(shared, 0, sizeof(*shared));
	group = start_process(run_group);
	observer = start_process(run_observer);
	if (group < 0 || observer < 0)
		return wl_fail(t, "cannot fork: %m");
	while (shared->ready < tasks + 1) {
		if (is_gone(&group) || is_gone(&observer) || now_ns() > end)
			return wl_fail(t, "%lld of %lld tasks started", (long long)shared->ready,
				       (long long)tasks + 1);
		sleep_ms(1);
	}
	/* Not earlier: with a small quota many tasks take long to start. */
	error = bandwidth_limit(GROUP, &limit);
	return error ? wl_fail(t,
			       "cannot write " GROUP "/cpu.max: %s; the kernel needs CFS_BANDWIDTH",
			       strerror(-error))
		     : 0;
}

/*
 * Sleeps for as long as it should take, since the agent interrupts the observer when it looks, and
 * then up to as long again: a window can be missed.
 */
static int watch(struct trial *t)
{
	int64_t expected_ns = (wanted + SKIPPED + 2) * PERIOD_US * 1000LL;
	int64_t from_ns = now_ns(), left_ns = expected_ns;

	while (left_ns > 0) {
		sleep_ns(left_ns < LOOK_MS * 1000000LL ? left_ns : LOOK_MS * 1000000LL);
		wl_alive(t, "%lld throttled periods", (long long)shared->seen);
		if (is_gone(&group) || is_gone(&observer))
			return wl_fail(t, "a process is gone");
		left_ns = from_ns + expected_ns - now_ns();
		if (left_ns <= 0 && shared->seen < wanted + SKIPPED)
			left_ns = from_ns + 2 * expected_ns - now_ns();
	}
	return 0;
}

/* Kills and reaps both processes and removes the cgroup. 0 or -errno. */
static int kill_and_remove(void)
{
	int64_t end = now_ns() + GONE_MS * 1000000LL;
	pid_t pid;

	bandwidth_lift(GROUP);
	if (group > 0)
		kill(group, SIGKILL);
	if (observer > 0)
		kill(observer, SIGKILL);
	group = observer = 0;
	while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) >= 0 || errno == EINTR) {
		if (now_ns() > end)
			return -ETIMEDOUT;
		if (pid == 0)
			sleep_ms(1);
	}
	return cgroup_remove(GROUP, REMOVE_MS);
}

static int run(struct trial *t)
{
	struct kmsg message = {0};
	int64_t seen;
	int error;

	if (start(t))
		return -1;
	wl_settle(t, SETTLE_MS);
	wl_profile_begin(t);
	start_barrier_open(&shared->go);
	if (watch(t))
		return -1;
	wl_profile_end(t);
	seen = shared->seen;
	error = kill_and_remove();
	wl_check(t, "let_go", !error, "%s",
		 error ? strerror(-error) : "killed, reaped and removed");
	for (int64_t i = SKIPPED; i < seen && i < wanted + SKIPPED; i++) {
		wl_sample(t, "throttle_ns", shared->stretches[i].throttle_ns);
		wl_sample(t, "unthrottle_ns", shared->stretches[i].unthrottle_ns);
	}
	wl_check(t, "throttled", seen >= wanted + SKIPPED, "%lld of %lld periods", (long long)seen,
		 (long long)wanted + SKIPPED);
	wl_check(t, "log_clean", kmsg_problem(log_fd, &message) <= 0, "%s", message.text);
	return 0;
}

/* -- before and after -- */

static int setup(struct trial *t)
{
	int64_t quota_us = wl_param_int(t, "quota") * PERCENT_US;
	int error = bandwidth_allow(CGROUP_ROOT);

	shared = NULL;
	group = observer = 0;
	log_fd = kmsg_open();
	tasks = wl_param_int(t, "tasks");
	wanted = wl_param_int(t, "periods");
	limit = (struct bandwidth){.quota_us = quota_us, .period_us = PERIOD_US};
	least_window_ns = (PERIOD_US - quota_us) * 1000 / 2;
	if (error)
		return wl_fail(
			t, "cannot enable the cpu controller: %s; the kernel needs CGROUP_SCHED",
			strerror(-error));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? wl_fail(t, "not enough memory: %m") : 0;
}

static void cleanup(struct trial *t)
{
	int error = kill_and_remove();

	if (error && error != -ENOENT)
		wl_fail(t, "cannot remove " GROUP ": %s", strerror(-error));
	if (shared && shared != MAP_FAILED)
		munmap(shared, sizeof(*shared));
	if (log_fd >= 0)
		close(log_fd);
}

static const char *const params[] = {"tasks", "quota", "periods", NULL};
static const struct workload throttled_tasks = {
	.name = "throttled_tasks",
	.summary = "a group of many runnable tasks runs out of CPU quota and gets new quota",
	.params = params,
	.stretch = "all periods: the tasks and the observer spin",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(throttled_tasks);
