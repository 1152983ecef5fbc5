// SPDX-License-Identifier: GPL-2.0
/*
 * One attempt to freeze all tasks that takes several passes, beside zombies: what the freezer
 * executes, and how many zombies arrive meanwhile.
 *
 * The freezer repeats its walk over all tasks while one of them is not frozen, and sleeps for
 * at most 8 ms in between. Three things make it repeat, in any combination:
 *
 * - processes that are in the kernel's exit when it begins. It waits until they are dead, and
 *   each of them is a new zombie. They run while the freezer sleeps.
 * - a process that exits with an open file of a FUSE file system, whose server does not
 *   answer: it cannot be frozen, and the attempt fails.
 * - processes that fork, whose children exit.
 *
 * The agent, which is the freezer, has a real-time priority, and all of these run only while
 * the CPU is idle. So on one CPU they run while the freezer sleeps, and not while the kernel
 * waits for a thread of its own, which it does before its first pass.
 */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crowd.h"
#include "lib/fuse_server.h"
#include "lib/suspend.h"
#include "lib/tasks.h"
#include "lib/zombie_parent.h"

#define SETTLE_MS 50
/* For so long the forkers fork before the attempt begins. */
#define STORM_MS 20
#define STUCK_MS 50
#define TIMEOUT "/sys/power/pm_freeze_timeout"
#define TIMEOUT_MS 20000 /* the kernel's default */

enum { FREEZES, FAILS };
static const char *const ends[] = {"freezes", "fails", NULL};

static struct zombie_parent parent;
static struct crowd crowd;
static pid_t server, stuck;
/* The server answers when this process, the agent itself, has exited. */
static _Atomic pid_t never;

static int set_priority(int policy, int priority)
{
	struct sched_param param = {.sched_priority = priority};

	return sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &param) ? -errno : 0;
}

/* A process that is in its exit until the server answers, and cannot be frozen there. */
static int start_stuck(struct trial *t)
{
	never = getpid();
	server = fuse_start(&never, 0);
	if (server < 0)
		return wl_fail(t, "cannot mount a FUSE file system: %s", strerror(-server));
	stuck = fork();
	if (!stuck)
		_exit(open(FUSE_FILE, O_RDONLY) < 0);
	if (stuck < 0)
		return wl_fail(t, "cannot fork: %m");
	sleep_ms(STUCK_MS);
	if (!strchr("SD", task_state(stuck)))
		return wl_fail(t, "a process that should wait for the FUSE server does not");
	return 0;
}

static int setup(struct trial *t)
{
	int error;

	memset(&crowd, 0, sizeof(crowd));
	parent.pid = server = stuck = 0;
	if (suspend_prepare(t, "freezer"))
		return -1;
	error = write_file(TIMEOUT, "%lld", (long long)wl_param_int(t, "timeout_ms"));
	if (error)
		return wl_fail(t, "cannot write %s: %s", TIMEOUT, strerror(-error));
	error = set_priority(SCHED_FIFO, CROWD_PRIORITY);
	if (error)
		return wl_fail(t, "cannot set a real-time priority: %s", strerror(-error));
	if (zombie_parent_start(t, &parent, wl_param_int(t, "zombies"), true, NULL))
		return -1;
	return wl_param_choice(t, "end", ends) == FAILS ? start_stuck(t) : 0;
}

/* All tasks of the guest, zombies and kernel threads too; -1: unknown. */
static int64_t count_tasks(void)
{
	char text[128], *slash;

	if (read_file("/proc/loadavg", text, sizeof(text)) < 0)
		return -1;
	slash = strchr(text, '/');
	return slash ? strtoll(slash + 1, NULL, 10) : -1;
}

static int64_t cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return used.tv_sec * 1000000000LL + used.tv_nsec;
}

static int64_t sleeps(void)
{
	struct rusage used;

	getrusage(RUSAGE_THREAD, &used);
	return used.ru_nvcsw;
}

/* The attempt itself: what it took, and what arrived. Returns suspend_once()'s value. */
static int64_t attempt(struct trial *t)
{
	int64_t tasks, exited, slept, used, start, elapsed, result;

	exited = crowd_exited(&crowd);
	tasks = count_tasks();
	slept = sleeps();
	wl_profile_begin(t);
	used = cpu_ns();
	start = now_ns();
	result = suspend_once();
	elapsed = now_ns() - start;
	used = cpu_ns() - used;
	wl_profile_end(t);
	slept = sleeps() - slept;
	tasks = count_tasks() - tasks;
	exited = crowd_exited(&crowd) - exited;
	wl_sample(t, "attempt_ns", elapsed);
	wl_sample(t, "freezer_cpu_ns", used);
	wl_sample(t, "sleeps_count", slept);
	wl_sample(t, "exited_count", exited);
	wl_sample(t, "forked_count", tasks);
	return result;
}

static int run(struct trial *t)
{
	int64_t zombies = wl_param_int(t, "zombies"), exiting = wl_param_int(t, "exiting");
	int64_t forkers = wl_param_int(t, "forkers"), early, result, left;
	bool fails = wl_param_choice(t, "end", ends) == FAILS;
	int error;

	wl_settle(t, SETTLE_MS);
	error = crowd_start(&crowd, exiting, wl_param_int(t, "pages"), forkers);
	if (error)
		return wl_fail(t, "cannot start the processes: %s", strerror(-error));
	if (forkers)
		sleep_ms(STORM_MS);
	early = crowd_exited(&crowd);
	result = attempt(t);
	left = crowd.count - crowd_exited(&crowd);
	wl_check(t, "ended", fails ? result == -EBUSY : result >= 0, "%s",
		 result < 0 ? strerror((int)-result) : "all tasks were frozen");
	wl_check(t, "exits_begun", !early, "%lld of %lld have exited before the attempt",
		 (long long)early, (long long)exiting);
	wl_check(t, "exits_awaited", fails || !left, "%lld of %lld were still in their exit",
		 (long long)left, (long long)exiting);
	error = crowd_dismiss(&crowd);
	if (error)
		return wl_fail(t, "cannot wait for the processes: %s", strerror(-error));
	left = zombie_parent_count(&parent);
	wl_check(t, "all_zombies", left == zombies, "%lld", (long long)left);
	return 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	set_priority(SCHED_OTHER, 0);
	crowd_dismiss(&crowd);
	if (server > 0) {
		fuse_stop(server);
		waitpid(server, NULL, 0);
	}
	if (stuck > 0)
		waitpid(stuck, NULL, 0);
	zombie_parent_stop(&parent);
	write_file(TIMEOUT, "%d", TIMEOUT_MS);
	suspend_restore();
}

static const char *const params[] = {"zombies", "exiting",    "pages", "forkers",
				     "end",	"timeout_ms", NULL};
static const struct workload freeze_attempt = {
	.name = "freeze_attempt",
	.summary = "an attempt to freeze all tasks, while processes exit or one cannot be frozen",
	.params = params,
	.stretch = "the attempt, including the thaw",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(freeze_attempt);
