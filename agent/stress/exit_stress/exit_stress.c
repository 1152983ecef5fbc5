// SPDX-License-Identifier: GPL-2.0
/*
 * Processes in every state in which a signal to their group can find them, and the proof
 * that all of them exit: also those whose exit waits for another of them, while CPUs go
 * offline and online and memory runs out.
 *
 * The hardest case is FUSE: some processes wait in close() until the server has seen one
 * certain process exit. That process must not have to wait for them.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/fuse_server.h"
#include "lib/hotplug.h"
#include "lib/kmsg.h"
#include "lib/tasks.h"
#include "side_effects.h"
#include "targets.h"
#include "workload.h"

#define READY_MS 60000
#define GONE_MS 30000 /* on base it takes a second or two, with lockdep and under emulation */
#define NOTICE_MS 5000
#define HUNG_S 15
#define CORES "/cores"
#define MAX_TARGETS 4096

static struct targets_shared *shared;
static pid_t targets[MAX_TARGETS], leader;
static char states[MAX_TARGETS];
static int nr_targets, log_fd = -1, round_nr;
static pid_t server, helpers[4];
static bool stuck;
static int nr_helpers;

static const struct target_kind *kind_of(const char *name)
{
	const struct target_kind *k = target_kinds;

	while (k->name && strcmp(k->name, name))
		k++;
	return k;
}

/* -- helpers outside the group -- */

static void hotplug_cpu(struct targets_shared *s)
{
	for (bool online = false; !s->go || !online; online = !online) {
		hotplug_cpu1(online);
		sleep_ms(5);
	}
	for (int i = 0; i < 6; i++) {
		hotplug_cpu1(i % 2);
		sleep_ms(10);
	}
}

static void fork_and_kill(struct targets_shared *s)
{
	(void)s;
	for (;;) {
		pid_t pid = fork();

		if (!pid)
			sleep_ms(1000);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
}

static int start_helper(struct trial *t, void (*body)(struct targets_shared *s))
{
	pid_t pid = fork();

	if (pid < 0)
		return wl_fail(t, "cannot fork: %m");
	if (!pid) {
		body(shared);
		_exit(0);
	}
	helpers[nr_helpers++] = pid;
	return 0;
}

/* -- one round, step by step -- */

static int add(struct trial *t, const struct target_kind *kind)
{
	pid_t pid = nr_targets < MAX_TARGETS ? target_start(kind, shared, leader) : -1;

	if (pid < 0)
		return wl_fail(t, "cannot start target %d, %s: %m", nr_targets, kind->name);
	/* The child does the same: whichever runs first sets the group. */
	setpgid(pid, leader ? leader : pid);
	if (!leader)
		leader = pid;
	states[nr_targets] = kind->state;
	targets[nr_targets++] = pid;
	return 0;
}

static int start_targets(struct trial *t)
{
	int64_t sleepers = wl_param_int(t, "processes");

	leader = nr_targets = nr_helpers = 0;
	memset(shared, 0, sizeof(*shared));
	server = fuse_start(&shared->key, 0);
	if (server < 0)
		return wl_fail(t, "cannot mount FUSE: %s", strerror(-server));
	if (add(t, kind_of("sleeping")))
		return -1;
	for (const struct target_kind *k = target_kinds; k->name; k++)
		for (int i = 0; i < k->copies; i++)
			if (add(t, k))
				return -1;
	for (; sleepers; sleepers--)
		if (add(t, kind_of(sleepers % 2 ? "sleeping" : "reading")))
			return -1;
	/*
	 * The oldest and the youngest in turn: in whatever order targets exit, one of the two is
	 * late.
	 */
	shared->key = targets[round_nr % 2 ? nr_targets - 1 : 0];
	return 0;
}

static int wait_until_ready(struct trial *t)
{
	int64_t end = now_ns() + READY_MS * 1000000LL;

	while (shared->ready < nr_targets) {
		if (now_ns() > end)
			return wl_fail(t, "%d of %d targets are ready", shared->ready, nr_targets);
		sleep_ms(5);
	}
	for (int i = 0; i < nr_targets; i++)
		if (states[i] && !task_wait_state(targets[i], states[i], READY_MS))
			return wl_fail(t, "target %d is in state %c, not %c", i,
				       task_state(targets[i]), states[i]);
	write_file(CG_FROZEN "/cgroup.freeze", "1");
	return 0;
}

static int start_helpers(struct trial *t)
{
	static void (*const bodies[])(struct targets_shared *) = {
		outside_tracer, outside_futex_waiter, fork_and_kill, hotplug_cpu};

	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
		if (start_helper(t, bodies[i]))
			return -1;
	for (int64_t end = now_ns() + READY_MS * 1000000LL; !shared->tracer_ready; sleep_ms(1))
		if (now_ns() > end)
			return wl_fail(t, "the tracer does not trace");
	return 0;
}

/* After any signal but SIGKILL some are left, the stopped and the traced ones: SIGKILL follows. */
static void kill_targets(void)
{
	static const int signals[] = {SIGKILL, SIGINT, SIGQUIT, SIGTERM};

	shared->go = true;
	kill(-leader, signals[round_nr % ARRAY_SIZE(signals)]);
	sleep_ms(20);
	kill(-leader, SIGKILL);
}

/* Records how many targets are left, and the first of them with its state. */
static void check_gone(struct trial *t, bool gone)
{
	int left = 0, first = -1;

	for (int i = 0; !gone && i < nr_targets; i++)
		if (!kill(targets[i], 0)) {
			left++;
			first = first < 0 ? i : first;
		}
	wl_check(t, "all_gone", gone, "round %d: %d of %d left; the first is target %d, state %c",
		 round_nr, left, nr_targets, first, first < 0 ? '-' : task_state(targets[first]));
}

/* If tasks are stuck they are not reaped: that could take for ever. */
static void clean_up(void)
{
	for (int i = 0; i < nr_helpers; i++)
		kill(helpers[i], SIGKILL);
	if (server > 0)
		fuse_stop(server);
	if (leader)
		kill(-leader, SIGKILL);
	write_file(CG_FROZEN "/cgroup.freeze", "0");
	if (!stuck)
		kill_and_reap_all(0);
	hotplug_cpu1(true);
	server = leader = 0;
}

static void check_outside(struct trial *t)
{
	for (int64_t end = now_ns() + NOTICE_MS * 1000000LL; !shared->futex_died; sleep_ms(1))
		if (now_ns() > end)
			break;
	wl_check(t, "owner_died", shared->futex_died, "the futex is %#x", shared->futex);
	wl_check(t, "exit_traced", shared->saw_exit_event, "%s", "");
}

static int one_round(struct trial *t)
{
	int64_t start;
	bool gone;

	if (start_targets(t) || wait_until_ready(t) || start_helpers(t))
		return -1;
	wl_alive(t, "round %d: %d targets", round_nr, nr_targets);
	start = now_ns();
	kill_targets();
	gone = group_reap(leader, GONE_MS);
	wl_sample(t, "gone_ns", now_ns() - start);
	check_gone(t, gone);
	check_outside(t);
	stuck = !gone;
	clean_up();
	round_nr++;
	return gone ? 0 : wl_fail(t, "not all are gone");
}

static void check_side_effects(struct trial *t)
{
	const char *wrong = event_reaches_running_task();

	wl_check(t, "event_gets_through", !wrong, "%s", wrong ? wrong : "");
	wl_alive(t, "a group beside other killed processes");
	wrong = group_exits_beside_others();
	wl_check(t, "no_task_starves", !wrong, "%s", wrong ? wrong : "");
}

static void check_log(struct trial *t)
{
	struct kmsg m;
	int got = kmsg_problem(log_fd, &m);

	wl_check(t, "log_clean", !got, "%s", got > 0 ? m.text : strerror(-got));
}

static int setup(struct trial *t)
{
	int error;

	server = leader = 0;
	round_nr = 0;
	stuck = false;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return wl_fail(t, "cannot mmap memory: %m");
	log_fd = kmsg_open();
	if (log_fd < 0)
		return wl_fail(t, "cannot read /dev/kmsg: %s", strerror(-log_fd));
	mkdir(CORES, 0777);
	mkdir("/dev/pts", 0755);
	if (mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=0666") && errno != EBUSY)
		return wl_fail(t, "cannot mount devpts: %m");
	error = write_file("/proc/sys/kernel/core_pattern", CORES "/core");
	if (!error)
		error = write_file("/proc/sys/kernel/hung_task_timeout_secs", "%d", HUNG_S);
	if (!error)
		error = targets_prepare();
	return error ? wl_fail(t, "cannot prepare the guest: %s", strerror(-error)) : 0;
}

static int run(struct trial *t)
{
	int error = 0;

	for (int64_t i = wl_param_int(t, "rounds"); i && !error; i--)
		error = one_round(t);
	check_log(t);
	/* A round that fails may leave stuck tasks. */
	if (error)
		return error;
	check_side_effects(t);
	check_log(t);
	return 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	clean_up();
	targets_restore();
	unlink(CORES "/core");
	if (log_fd >= 0)
		close(log_fd);
}

static const char *const params[] = {"processes", "rounds", NULL};
static const struct workload exit_stress = {
	.name = "exit_stress",
	.summary = "kill a group of processes in every state that they can be in",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(exit_stress);
