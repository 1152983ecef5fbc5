// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* CPU_SET(), SCHED_IDLE */
#include "storm.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/hotplug.h"
#include "lib/tasks.h"
#include "victims.h"

#define NR_GROUPS 7
#define NR_LEAVES 4
#define FIRST_LEAF 3

/* The first three have children; the victims are in the others. */
static const char *const names[NR_GROUPS] = {"storm",	  "storm/a",   "storm/b", "storm/a/x",
					     "storm/a/y", "storm/b/z", "storm/c"};
static char groups[NR_GROUPS][128];
static const char *const quotas[] = {"max 100000", "50000 100000", "20000 50000", "10000 20000",
				     "5000 20000", "2000 10000",   "1000 20000",  "2000 50000",
				     "max 100000", "3000 10000"};
static struct prng choices;
static bool hotplugging;

static const char *any_leaf(void)
{
	return groups[FIRST_LEAF + prng_below(&choices, NR_LEAVES)];
}

/* The pid of some victim; 0 if its place is empty at the moment. */
static pid_t any_victim(void)
{
	return victims_shared->pids[prng_below(&choices, MAX_VICTIMS)];
}

static void any_quota(int g)
{
	quota_set(groups[g], quotas[prng_below(&choices, ARRAY_SIZE(quotas))]);
}

/* -- the disturbances: each function does one -- */

static void move_one(void)
{
	pid_t pid = any_victim();

	if (pid)
		victim_move(pid, any_leaf());
	sleep_ms(1);
}

static void pin_one(void)
{
	uint64_t bits = 1 + prng_below(&choices, 3);
	pid_t pid = any_victim();

	if (pid)
		sched_setaffinity(pid, sizeof(bits), (cpu_set_t *)&bits);
	sleep_ms(1);
}

/*
 * Real-time only for a moment, since nothing else would run: the task that ends it has a
 * higher priority.
 */
static void change_policy(void)
{
	static const int fair[] = {SCHED_OTHER, SCHED_BATCH, SCHED_IDLE};
	struct sched_param first = {.sched_priority = 1}, before = {.sched_priority = 2};
	struct sched_param none = {0};
	pid_t pid = any_victim();

	if (pid && !sched_setscheduler(0, SCHED_FIFO, &before)) {
		sched_setscheduler(pid, SCHED_FIFO, &first);
		sleep_ms(1);
		sched_setscheduler(pid, fair[prng_below(&choices, 3)], &none);
		setpriority(PRIO_PROCESS, pid, (int)prng_below(&choices, 20));
	}
	sleep_ms(2);
}

static void stop_one(void)
{
	pid_t pid = any_victim();

	if (pid && !kill(pid, SIGSTOP)) {
		sleep_ms((int64_t)prng_below(&choices, 20));
		kill(pid, SIGCONT);
	}
	sleep_ms(1);
}

static void freeze_some(void)
{
	char file[160];

	snprintf(file, sizeof(file), "%s/cgroup.freeze", any_leaf());
	write_file(file, "1");
	sleep_ms((int64_t)prng_below(&choices, 30));
	write_file(file, "0");
	sleep_ms(5);
}

/*
 * Done by a child: when it exits, the kernel detaches all tasks that it traced. Meanwhile a
 * killed task stops before it exits.
 */
static void trace_one(void)
{
	pid_t pid = any_victim(), tracer = fork();

	if (!tracer) {
		if (pid && !ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXIT) &&
		    !ptrace(PTRACE_INTERRUPT, pid, 0, 0))
			task_wait_state(pid, 't', 50);
		_exit(0);
	}
	if (tracer > 0)
		waitpid(tracer, NULL, 0);
	sleep_ms(1);
}

static void change_quota(void)
{
	any_quota((int)prng_below(&choices, NR_GROUPS));
	sleep_ms((int64_t)prng_below(&choices, 10));
}

static void hotplug_cpu(void)
{
	if (hotplugging) {
		hotplug_cpu1(false);
		sleep_ms((int64_t)prng_below(&choices, 30));
		hotplug_cpu1(true);
	}
	sleep_ms(50);
}

/* Makes a cgroup, uses it for a while and removes it again. */
static void make_group(void)
{
	const char *parent = groups[prng_below(&choices, FIRST_LEAF)];
	char path[160];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/late", parent);
	if (cgroup_make(path))
		return;
	quota_set(path, quotas[prng_below(&choices, ARRAY_SIZE(quotas))]);
	pid = fork();
	if (!pid) {
		cgroup_enter(path);
		for (int64_t end = now_ns() + 5000000; now_ns() < end;)
			getppid();
		_exit(0);
	}
	sleep_ms((int64_t)prng_below(&choices, 20));
	if (pid > 0)
		kill(pid, SIGKILL);
	quota_set(parent, "max");
	quota_set(path, "max");
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (cgroup_remove(path, QUOTA_PATIENCE_MS))
		victims_shared->not_removed++;
}

static const struct disturbance {
	const char *name;
	void (*once)(void);
} disturbances[] = {
	{"moves", move_one},	     {"moves", move_one},      {"affinity", pin_one},
	{"policies", change_policy}, {"stops", stop_one},      {"freezes", freeze_some},
	{"traces", trace_one},	     {"quotas", change_quota}, {"CPUs", hotplug_cpu},
	{"cgroups", make_group},
};
static pid_t disturbers[ARRAY_SIZE(disturbances)];

static int start_disturbers(struct trial *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(disturbances); i++) {
		choices.state += i; /* each process has other random numbers */
		disturbers[i] = fork();
		if (disturbers[i] < 0)
			return wl_fail(t, "cannot fork: %m");
		if (!disturbers[i]) {
			while (!victims_shared->stop)
				disturbances[i].once();
			_exit(VICTIM_EXIT_OK);
		}
	}
	return 0;
}

/* Appends what a task is waiting in to the text; returns its new length. */
static int describe_task(char *text, int len, size_t size, const char *name, pid_t pid)
{
	char file[64], where[64] = "";
	int written;

	snprintf(file, sizeof(file), "/proc/%d/wchan", (int)pid);
	read_file(file, where, sizeof(where));
	written = snprintf(text + len, size - len, " %s (%c in %s)", name, task_state(pid), where);
	return len + written < (int)size ? len + written : (int)size - 1;
}

/* Returns what is wrong, or NULL. */
static const char *stop_disturbers(void)
{
	static char text[400];
	int start = snprintf(text, sizeof(text), "disturbers that do not exit:"), len = start;
	int64_t end_ns = now_ns() + 2 * QUOTA_PATIENCE_MS * 1000000LL;

	victims_shared->stop = true;
	for (size_t i = 0; i < ARRAY_SIZE(disturbances); i++) {
		int status = task_reap(disturbers[i], (end_ns - now_ns()) / 1000000);

		if (!WIFEXITED(status) || WEXITSTATUS(status) != VICTIM_EXIT_OK)
			len = describe_task(text, len, sizeof(text), disturbances[i].name,
					    disturbers[i]);
		disturbers[i] = 0;
	}
	victims_shared->stop = false;
	return len > start ? text : NULL;
}

/* -- the agent itself kills, reaps and replaces victims -- */

static bool killed[MAX_VICTIMS]; /* killed, and not reaped yet */

static void kill_one(void)
{
	uint64_t place = prng_below(&choices, MAX_VICTIMS);

	if (!victims_shared->pids[place] || prng_below(&choices, 4))
		return;
	kill(victims_shared->pids[place], SIGKILL);
	killed[place] = true;
}

static const char *replace_exited(int64_t victims)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		int place = victim_gone(pid);

		if (place >= 0)
			killed[place] = false;
	}
	for (int64_t i = 0; i < victims; i++)
		if (!victims_shared->pids[i] &&
		    victim_put((int)i, (enum victim_work)(i % VICTIM_WORKS), any_leaf()))
			return "a victim cannot be started";
	return NULL;
}

static const char *await_killed(int64_t victims)
{
	static char text[600];
	int64_t end = now_ns() + QUOTA_DEATH_MS * 1000000LL;

	for (int i = 0; i < MAX_VICTIMS; i++)
		while (killed[i]) {
			const char *wrong = replace_exited(victims);

			if (wrong)
				return wrong;
			if (now_ns() > end) {
				snprintf(text, sizeof(text), "killed victims do not exit%s",
					 victims_left());
				return text;
			}
			sleep_ms(1);
		}
	return replace_exited(victims);
}

static void undo_disturbances_of(pid_t pid)
{
	struct sched_param none = {0};
	cpu_set_t both;

	CPU_ZERO(&both);
	CPU_SET(0, &both);
	CPU_SET(1, &both);
	kill(pid, SIGCONT);
	sched_setscheduler(pid, SCHED_OTHER, &none);
	setpriority(PRIO_PROCESS, pid, 0);
	sched_setaffinity(pid, sizeof(both), &both);
}

/*
 * The children last: what a victim forked in the storm has the policy of that moment, and as
 * SCHED_IDLE it would get hardly any time beside all others.
 */
static void undo_disturbances(void)
{
	char file[160];

	hotplug_end();
	for (int g = FIRST_LEAF; g < NR_GROUPS; g++) {
		snprintf(file, sizeof(file), "%s/cgroup.freeze", groups[g]);
		write_file(file, "0");
	}
	for (int i = 0; i < MAX_VICTIMS; i++)
		if (victims_shared->pids[i])
			undo_disturbances_of(victims_shared->pids[i]);
	for (int g = FIRST_LEAF; g < NR_GROUPS; g++) {
		FILE *procs;
		pid_t pid;

		snprintf(file, sizeof(file), "%s/cgroup.procs", groups[g]);
		procs = fopen(file, "re");
		while (procs && fscanf(procs, "%d", &pid) == 1)
			undo_disturbances_of(pid);
		if (procs)
			fclose(procs);
	}
}

const char *storm_run(struct trial *t, int64_t victims, int64_t ms, uint64_t seed, bool hotplug)
{
	int64_t end = now_ns() + ms * 1000000, reported = now_ns();
	const char *wrong = NULL, *not_ended;

	choices.state = seed;
	hotplugging = hotplug;
	if (hotplug)
		hotplug_begin();
	for (int i = 0; i < MAX_VICTIMS; i++)
		killed[i] = false;
	for (int g = 0; g < NR_GROUPS; g++)
		any_quota(g);
	wrong = replace_exited(victims);
	if (wrong || start_disturbers(t))
		return wrong ? wrong : "not all disturbers can be started";
	while (now_ns() < end && !wrong) {
		kill_one();
		sleep_ms(10);
		wrong = replace_exited(victims);
		if (now_ns() - reported > 10000000000) {
			reported = now_ns();
			wl_alive(t, "storm");
		}
	}
	not_ended = stop_disturbers();
	wrong = not_ended ? not_ended : wrong;
	undo_disturbances();
	return wrong ? wrong : await_killed(victims);
}

/* -- cgroups -- */

int storm_setup(const char *top)
{
	int error = 0;

	for (int g = 0; g < NR_GROUPS && !error; g++) {
		snprintf(groups[g], sizeof(groups[g]), "%s/%s", top, names[g]);
		error = cgroup_make(groups[g]);
		if (!error && g < FIRST_LEAF)
			error = quota_allow_below(groups[g]);
	}
	return error;
}

int storm_lift(void)
{
	int error = 0;

	for (int g = 0; g < NR_GROUPS && !error; g++)
		error = quota_set(groups[g], "max");
	return error;
}

void storm_drop(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(disturbances); i++)
		if (disturbers[i] > 0)
			kill(disturbers[i], SIGKILL);
	undo_disturbances();
	storm_lift();
}
