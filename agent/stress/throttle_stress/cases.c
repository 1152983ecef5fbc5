// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* SCHED_IDLE */
#include "cases.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/hotplug.h"
#include "lib/tasks.h"
#include "limits.h"
#include "victims.h"
#include "workers.h"

/*
 * Two with a quota of their own, one without, and three of which each is inside the
 * previous one.
 */
enum group { SMALL, OTHER, FREE, OUTER, INNER, LEAF, LATE, NR_GROUPS };
static const char *const names[] = {
	"small", "other", "free", "outer", "outer/inner", "outer/inner/leaf", "outer/late"};
static char groups[NR_GROUPS][128];

static const char *start(enum group g, int count)
{
	for (int i = 0; i < count; i++)
		EXPECT(!victim_put(i, i % 2 ? VICTIM_LIST : VICTIM_SPIN, groups[g]),
		       "no process can be started in the cgroup");
	return victims_throttled() ? NULL : "they are not throttled after the start";
}

#define START(g, count)                                                                            \
	do {                                                                                       \
		const char *wrong = start(g, count);                                               \
                                                                                                   \
		if (wrong)                                                                         \
			return wrong;                                                              \
	} while (0)

static bool move_all(enum group g)
{
	bool moved = true;

	EACH_VICTIM(pid)
	moved = moved && !victim_move(pid, groups[g]);
	return moved;
}

static const char *moved(void)
{
	START(SMALL, 2);
	EXPECT(move_all(OTHER) && victims_throttled(),
	       "moved to another small quota, they are not throttled");
	EXPECT(move_all(FREE) && victims_run(), "moved to no quota, they do not run");
	EXPECT(move_all(SMALL) && victims_throttled(), "moved back, they are not throttled");
	for (int i = 0; i < 20; i++)
		EXPECT(move_all(i % 2 ? SMALL : OTHER), "they cannot be moved repeatedly");
	EXPECT(victims_throttled(), "moved repeatedly, they are not throttled");
	EXPECT(move_all(FREE) && victims_run(), "moved to no quota at the end, they do not run");
	return NULL;
}

static const char *pinned(void)
{
	START(SMALL, 2);
	for (int i = 0; i < 20; i++) {
		victims_pin(i % 2);
		sleep_ms(5);
	}
	EXPECT(victims_throttled(), "moved from CPU to CPU, they are not throttled");
	EXPECT(move_all(FREE) && victims_run(), "on one CPU, without quota, they do not run");
	victims_pin(-1);
	EXPECT(move_all(SMALL) && victims_throttled(), "on all CPUs, they are not throttled");
	return NULL;
}

static bool set_policy(int policy, int nice)
{
	struct sched_param param = {.sched_priority = policy == SCHED_FIFO};
	bool done = true;

	EACH_VICTIM(pid)
	done = done && !sched_setscheduler(pid, policy, &param) &&
	       (policy == SCHED_FIFO || !setpriority(PRIO_PROCESS, pid, nice));
	return done;
}

static const char *policies(void)
{
	static const struct {
		int policy, nice;
	} fair[] = {{SCHED_IDLE, 0}, {SCHED_BATCH, 10}, {SCHED_OTHER, -10}, {SCHED_OTHER, 0}};

	START(SMALL, 1);
	for (size_t i = 0; i < ARRAY_SIZE(fair); i++) {
		EXPECT(set_policy(SCHED_FIFO, 0) && victims_run(),
		       "as real-time tasks they do not run");
		EXPECT(set_policy(fair[i].policy, fair[i].nice) && victims_throttled(),
		       "as fair tasks again they are not throttled");
	}
	for (int i = 0; i < 20; i++)
		EXPECT(set_policy(i % 2 ? SCHED_IDLE : SCHED_OTHER, i), "a policy cannot be set");
	EXPECT(victims_throttled(), "after several policies they are not throttled");
	EXPECT(set_policy(SCHED_OTHER, 0) && move_all(FREE) && victims_run(),
	       "without quota they do not run");
	return NULL;
}

static bool all_in_state(char state)
{
	bool in = true;

	EACH_VICTIM(pid)
	in = in && task_wait_state(pid, state, QUOTA_PATIENCE_MS);
	return in;
}

static void signal_all(int signo)
{
	EACH_VICTIM(pid)
	kill(pid, signo);
}

static const char *stopped(void)
{
	START(SMALL, 2);
	signal_all(SIGSTOP);
	EXPECT(all_in_state('T'), "they do not stop");
	EXPECT(move_all(OTHER), "stopped tasks cannot be moved");
	signal_all(SIGCONT);
	EXPECT(victims_throttled(), "continued, they are not throttled");
	for (int i = 0; i < 20; i++)
		signal_all(i % 2 ? SIGCONT : SIGSTOP);
	EXPECT(move_all(FREE) && victims_run(), "without quota they do not run");
	return NULL;
}

static bool await_frozen(enum group g, int64_t frozen)
{
	int64_t end = now_ns() + QUOTA_PATIENCE_MS * 1000000LL;

	while (cgroup_value(groups[g], "cgroup.events", "frozen") != frozen) {
		if (now_ns() > end)
			return false;
		sleep_ms(1);
	}
	return true;
}

static const char *frozen(void)
{
	char file[160];

	snprintf(file, sizeof(file), "%s/cgroup.freeze", groups[SMALL]);
	START(SMALL, 2);
	EXPECT(!write_file(file, "1") && await_frozen(SMALL, 1), "they do not freeze");
	EXPECT(!write_file(file, "0") && await_frozen(SMALL, 0), "they do not thaw");
	EXPECT(victims_throttled(), "thawed, they are not throttled");
	for (int i = 0; i < 20; i++)
		EXPECT(!write_file(file, "%d", i % 2), "freezing fails");
	write_file(file, "0");
	EXPECT(move_all(FREE) && victims_run(), "without quota they do not run");
	return NULL;
}

static bool stops_for_tracer(pid_t pid)
{
	int64_t end = now_ns() + QUOTA_PATIENCE_MS * 1000000LL;
	int status;

	while (waitpid(pid, &status, WNOHANG | __WALL) != pid) {
		if (now_ns() > end)
			return false;
		sleep_ms(1);
	}
	return WIFSTOPPED(status);
}

static const char *traced(void)
{
	START(SMALL, 2);
	EACH_VICTIM(pid)
	{
		EXPECT(!ptrace(PTRACE_SEIZE, pid, 0, 0) && !ptrace(PTRACE_INTERRUPT, pid, 0, 0),
		       "they cannot be traced");
		EXPECT(stops_for_tracer(pid), "they do not stop for a tracer");
		for (int i = 0; i < 4 && each_ % 2; i++)
			EXPECT(!ptrace(PTRACE_SYSCALL, pid, 0, 0) && stops_for_tracer(pid),
			       "they do not stop at system calls");
		EXPECT(!ptrace(PTRACE_DETACH, pid, 0, 0), "they cannot be detached");
	}
	EXPECT(victims_throttled(), "after tracing they are not throttled");
	EXPECT(move_all(FREE) && victims_run(), "without quota they do not run");
	return NULL;
}

static const char *killed(void)
{
	START(SMALL, 2);
	EXPECT(victims_end(true), "not all of them exit");
	return NULL;
}

static const char *quota_changed(void)
{
	static const char *const quotas[] = {
		"max",	     "1000 1000000", "50000 100000",	"1000 5000",
		"max 50000", QUOTA_SMALLEST, "1000000 1000000", "2000 10000"};

	START(SMALL, 2);
	for (int i = 0; i < 40; i++) {
		EXPECT(!quota_set(groups[SMALL], quotas[i % ARRAY_SIZE(quotas)]),
		       "a quota cannot be set");
		sleep_ms(i % 7);
	}
	EXPECT(!quota_set(groups[SMALL], "max") && victims_run(), "without quota they do not run");
	EXPECT(!quota_set(groups[SMALL], QUOTA_SMALLEST) && victims_throttled(),
	       "with a new quota they are not throttled");
	EXPECT(!quota_set(groups[SMALL], "200000 100000") && victims_run(),
	       "with a larger quota they do not run");
	return quota_set(groups[SMALL], QUOTA_SMALLEST) ? "the quota cannot be set" : NULL;
}

static bool set_nested(const char *outer, const char *inner)
{
	return !quota_set(groups[OUTER], outer) && !quota_set(groups[INNER], inner);
}

static const char *nested(void)
{
	static const char least[] = QUOTA_SMALLEST;

	EXPECT(set_nested(least, least), "no quota can be set");
	START(LEAF, 2);
	EXPECT(set_nested(least, "max") && victims_throttled(), "the outer quota is not enforced");
	EXPECT(set_nested("max", "max") && victims_run(), "without quotas they do not run");
	EXPECT(set_nested("max", least) && victims_throttled(), "the inner quota is not enforced");
	EXPECT(set_nested(least, least) && victims_throttled(), "two quotas are not enforced");
	EXPECT(set_nested("max", least) && victims_throttled(),
	       "after the outer quota was removed, the inner quota is not enforced");
	EXPECT(set_nested("max", "max") && victims_run(),
	       "without quotas at the end they do not run");
	return NULL;
}

static const char *hotplug(void)
{
	START(SMALL, 4);
	for (int i = 0; i < 4; i++) {
		EXPECT(!hotplug_cpu1(false), "CPU 1 does not go offline");
		EXPECT(i || victims_throttled(), "on the remaining CPU they are not throttled");
		EXPECT(!hotplug_cpu1(true), "CPU 1 does not come back online");
	}
	EXPECT(victims_throttled(), "with all CPUs online they are not throttled");
	EXPECT(!hotplug_cpu1(false) && move_all(FREE) && victims_run(),
	       "on the remaining CPU, without quota, they do not run");
	return NULL;
}

static const char *plugged(void)
{
	const char *wrong;

	hotplug_begin();
	wrong = hotplug();
	hotplug_end();
	return wrong;
}

/* New children, and a new cgroup, while there is no quota left. */
static const char *newborn(void)
{
	EXPECT(set_nested(QUOTA_SMALLEST, "max"), "no quota can be set");
	START(LEAF, 2);
	for (int i = 2; i < 6; i++)
		EXPECT(!victim_put(i, VICTIM_SPIN, groups[LEAF]), "no child can be started");
	EXPECT(victims_throttled(), "a new child of a throttled parent is not throttled");
	EXPECT(!cgroup_make(groups[LATE]), "no cgroup can be made");
	EXPECT(!victim_put(6, VICTIM_SPIN, groups[LATE]) &&
		       !victim_put(7, VICTIM_LIST, groups[LATE]),
	       "no child can be started in a new cgroup");
	EXPECT(victims_throttled(), "a new cgroup inside a throttled one is not throttled");
	EXPECT(set_nested("max", "max") && victims_run(), "without quota they do not run");
	EXPECT(move_all(FREE) && !cgroup_remove(groups[LATE], QUOTA_PATIENCE_MS),
	       "the new cgroup cannot be removed");
	return NULL;
}

/*
 * -- the kernel's estimate of a task's CPU use, which it updates only while the task's
 * time passes --
 */

int64_t sched_value_in(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, len) && (line[len] == ' ' || line[len] == ':'))
			return atoll(line + len + strspn(line + len, " :"));
	}
	return -1;
}

static bool util_comes_to(pid_t pid, int64_t at_least, int64_t at_most)
{
	int64_t end = now_ns() + QUOTA_PATIENCE_MS * 1000000LL, util = -1;
	char path[64], text[8192];

	snprintf(path, sizeof(path), "/proc/%d/sched", (int)pid);
	while (util < at_least || util > at_most) {
		if (now_ns() > end || read_file(path, text, sizeof(text)) < 0)
			return false;
		util = sched_value_in(text, "se.avg.util_avg");
		sleep_ms(5);
	}
	return true;
}

/* A whole CPU is 1024. */
static const char *load_follows(void)
{
	const char *cgroup = groups[SMALL];

	victims_shared->spin = true;
	EXPECT(!victim_put(0, VICTIM_SWITCHED, cgroup), "no process can be started");
	for (int i = 0; i < 2; i++) {
		pid_t pid = victims_shared->pids[0];

		EXPECT(victims_throttled(), "it is not throttled");
		EXPECT(!quota_set(cgroup, "max") && victims_run(), "without quota it does not run");
		EXPECT(util_comes_to(pid, 600, 1100),
		       "it runs all the time, and its utilization is low");
		victims_shared->spin = false;
		EXPECT(util_comes_to(pid, 0, 300), "it sleeps, and its utilization is high");
		victims_shared->spin = true;
		EXPECT(util_comes_to(pid, 600, 1100), "it runs again, and its utilization is low");
		EXPECT(!quota_set(cgroup, QUOTA_SMALLEST), "no quota can be set");
	}
	return NULL;
}

/* -- the shares of a quota -- */

#define SHARERS 24
#define SHARE_PERCENT 60

/* The CPU time of the task that got least, in percent of the mean. */
static int64_t least_percent(void)
{
	int64_t from_ns[SHARERS], least_ns = INT64_MAX, all_ns = 0;

	for (int i = 0; i < SHARERS; i++)
		from_ns[i] = victim_cpu_ns(victims_shared->pids[i]);
	sleep_ms(5000);
	for (int i = 0; i < SHARERS; i++) {
		int64_t ns = victim_cpu_ns(victims_shared->pids[i]) - from_ns[i];

		least_ns = ns < least_ns ? ns : least_ns;
		all_ns += ns;
	}
	return all_ns > 0 ? least_ns * SHARERS * 100 / all_ns : 0;
}

/* In each period the quota is enough for a few of the tasks. */
static const char *shared(void)
{
	static char text[80];
	int64_t percent = 0;
	const char *cgroup = groups[LEAF];

	EXPECT(set_nested("10000 100000", "20000 100000"), "no quota can be set");
	for (int i = 0; i < SHARERS; i++)
		EXPECT(!victim_put(i, VICTIM_SPIN, cgroup), "no process can be started");
	victims_pin(1);
	sleep_ms(500);
	/* A host that stops the guest takes time from some tasks, but not in every stretch. */
	for (int stretch = 0; stretch < 5 && percent < SHARE_PERCENT; stretch++)
		percent = least_percent();
	snprintf(text, sizeof(text), "one task gets %lld%% of the mean", (long long)percent);
	return percent < SHARE_PERCENT ? text : NULL;
}

/* -- many threads at once -- */

static const char *crowd(void)
{
	EXPECT(!victim_put(0, VICTIM_CROWD, groups[FREE]) && victims_run(),
	       "no process with many threads can be started");
	EXPECT(move_all(SMALL) && victims_throttled(), "moved to a quota, they are not throttled");
	EXPECT(move_all(OTHER) && victims_throttled(),
	       "moved to another quota, they are not throttled");
	EXPECT(move_all(FREE) && victims_run(), "moved to no quota, they do not run");
	return NULL;
}

const struct throttle_case throttle_cases[] = {
	{"moved", moved},
	{"pinned", pinned},
	{"policies", policies},
	{"stopped", stopped},
	{"frozen", frozen},
	{"traced", traced},
	{"killed", killed},
	{"quota_changed", quota_changed},
	{"nested", nested},
	{"plugged", plugged},
	{"newborn", newborn},
	{"load_follows", load_follows},
	{"shared", shared},
	{"crowd", crowd},
	{"polled", limit_polled},
	{"reads", limit_reads},
	{"long_call", limit_long_call},
	{"exits", limit_exit},
	{"hashed", workers_hashed},
	{"idle", workers_idle},
	{"execs", workers_execs},
	{NULL, NULL},
};

/* -- their cgroups -- */

int cases_setup(const char *top)
{
	int error = 0;

	for (int g = 0; g < NR_GROUPS; g++)
		snprintf(groups[g], sizeof(groups[g]), "%s/%s", top, names[g]);
	for (int g = 0; g < LATE && !error; g++) {
		error = cgroup_make(groups[g]);
		if (!error && (g == OUTER || g == INNER))
			error = quota_allow_below(groups[g]);
	}
	for (int g = SMALL; g <= OTHER && !error; g++)
		error = quota_set(groups[g], QUOTA_SMALLEST);
	return error ? error : limits_setup(top);
}
