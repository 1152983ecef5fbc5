// SPDX-License-Identifier: GPL-2.0
/*
 * Processes in every state in which a signal to their group can find them, and
 * the proof that all of them go: also those whose exit waits for another one
 * of them, while CPUs come and go and memory runs out.
 *
 * The worst of it is FUSE: some wait in close() until the server has seen one
 * certain process exit. Nothing may make that one wait for them.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bystanders.h"
#include "fuse_server.h"
#include "lib/hotplug.h"
#include "lib/kmsg.h"
#include "lib/tasks.h"
#include "victims.h"
#include "workload.h"

#define READY_MS 60000
#define GONE_MS 30000 /* on base it is a second or two, with lockdep and under emulation */
#define TOLD_MS 5000
#define HUNG_S 15
#define CORES "/cores"
#define MAX_VICTIMS 4096

static struct scene *scene;
static pid_t victims[MAX_VICTIMS], leader;
static char states[MAX_VICTIMS];
static int nr_victims, log_fd = -1, round_nr;
static pid_t server, helpers[4];
static bool stuck;
static int nr_helpers;

static const struct victim_kind *kind_of(const char *name)
{
	const struct victim_kind *k = victim_kinds;

	while (k->name && strcmp(k->name, name))
		k++;
	return k;
}

/* -- helpers outside of the group -- */

static void plug_cpu(struct scene *s)
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

static void be_newcomers(struct scene *s)
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

static int help(struct trial *t, void (*body)(struct scene *s))
{
	pid_t pid = fork();

	if (pid < 0)
		return wl_fail(t, "fork: %m");
	if (!pid) {
		body(scene);
		_exit(0);
	}
	helpers[nr_helpers++] = pid;
	return 0;
}

/* -- one round, step by step -- */

static int add(struct trial *t, const struct victim_kind *kind)
{
	pid_t pid = nr_victims < MAX_VICTIMS ? victim_start(kind, scene, leader) : -1;

	if (pid < 0)
		return wl_fail(t, "victim %d, %s: %m", nr_victims, kind->name);
	setpgid(pid, leader ? leader : pid); /* as it does itself: whoever comes first */
	if (!leader)
		leader = pid;
	states[nr_victims] = kind->state;
	victims[nr_victims++] = pid;
	return 0;
}

static int start_victims(struct trial *t)
{
	int64_t sleepers = wl_param_int(t, "processes");

	leader = nr_victims = nr_helpers = 0;
	memset(scene, 0, sizeof(*scene));
	server = fuse_start(&scene->key);
	if (server < 0)
		return wl_fail(t, "FUSE: %s", strerror(-server));
	if (add(t, kind_of("sleeping")))
		return -1;
	for (const struct victim_kind *k = victim_kinds; k->name; k++)
		for (int i = 0; i < k->copies; i++)
			if (add(t, k))
				return -1;
	for (; sleepers; sleepers--)
		if (add(t, kind_of(sleepers % 2 ? "sleeping" : "reading")))
			return -1;
	/* The oldest and the youngest in turn: whatever the order in which they go, one is late. */
	scene->key = victims[round_nr % 2 ? nr_victims - 1 : 0];
	return 0;
}

static int wait_until_ready(struct trial *t)
{
	int64_t end = now_ns() + READY_MS * 1000000LL;

	while (scene->ready < nr_victims) {
		if (now_ns() > end)
			return wl_fail(t, "%d of %d victims are ready", scene->ready, nr_victims);
		sleep_ms(5);
	}
	for (int i = 0; i < nr_victims; i++)
		if (states[i] && !task_wait_state(victims[i], states[i], READY_MS))
			return wl_fail(t, "victim %d is in state %c, not %c", i,
				       task_state(victims[i]), states[i]);
	write_file(CG_FROZEN "/cgroup.freeze", "1");
	return 0;
}

static int start_helpers(struct trial *t)
{
	static void (*const bodies[])(struct scene *) = {outside_tracer, outside_futex_waiter,
							 be_newcomers, plug_cpu};

	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
		if (help(t, bodies[i]))
			return -1;
	for (int64_t end = now_ns() + READY_MS * 1000000LL; !scene->tracer_ready; sleep_ms(1))
		if (now_ns() > end)
			return wl_fail(t, "the tracer does not trace");
	return 0;
}

/* Anything but SIGKILL leaves some alive, the stopped and the traced: they follow. */
static void kill_victims(void)
{
	static const int signals[] = {SIGKILL, SIGINT, SIGQUIT, SIGTERM};

	scene->go = true;
	kill(-leader, signals[round_nr % ARRAY_SIZE(signals)]);
	sleep_ms(20);
	kill(-leader, SIGKILL);
}

/* Who is left, for the record: the first of them and its state. */
static void check_gone(struct trial *t, bool gone)
{
	int left = 0, first = -1;

	for (int i = 0; !gone && i < nr_victims; i++)
		if (!kill(victims[i], 0)) {
			left++;
			first = first < 0 ? i : first;
		}
	wl_check(t, "all_gone", gone, "round %d: %d of %d left; the first is victim %d, state %c",
		 round_nr, left, nr_victims, first, first < 0 ? '-' : task_state(victims[first]));
}

/* Those who are stuck are not reaped: that could take for ever. */
static void clear_up(void)
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
	for (int64_t end = now_ns() + TOLD_MS * 1000000LL; !scene->futex_died; sleep_ms(1))
		if (now_ns() > end)
			break;
	wl_check(t, "owner_died", scene->futex_died, "the futex is %#x", scene->futex);
	wl_check(t, "exit_traced", scene->saw_exit_event, "%s", "");
}

static int one_round(struct trial *t)
{
	int64_t start;
	bool gone;

	if (start_victims(t) || wait_until_ready(t) || start_helpers(t))
		return -1;
	wl_alive(t, "round %d: %d victims", round_nr, nr_victims);
	start = now_ns();
	kill_victims();
	gone = group_reap(leader, GONE_MS);
	wl_sample(t, "gone_ns", now_ns() - start);
	check_gone(t, gone);
	check_outside(t);
	stuck = !gone;
	clear_up();
	round_nr++;
	return gone ? 0 : wl_fail(t, "not all are gone");
}

static void check_bystanders(struct trial *t)
{
	const char *wrong = bystander_gets_event();

	wl_check(t, "event_gets_through", !wrong, "%s", wrong ? wrong : "");
	wl_alive(t, "beside rivals");
	wrong = crowd_goes_beside_rivals();
	wl_check(t, "nobody_starves", !wrong, "%s", wrong ? wrong : "");
}

static void check_log(struct trial *t)
{
	struct kmsg m;
	int got = kmsg_complaint(log_fd, &m);

	wl_check(t, "log_clean", !got, "%s", got > 0 ? m.text : strerror(-got));
}

static int setup(struct trial *t)
{
	int error;

	server = leader = 0;
	round_nr = 0;
	stuck = false;
	scene = mmap(NULL, sizeof(*scene), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (scene == MAP_FAILED)
		return wl_fail(t, "mmap: %m");
	log_fd = kmsg_open();
	if (log_fd < 0)
		return wl_fail(t, "/dev/kmsg: %s", strerror(-log_fd));
	mkdir(CORES, 0777);
	mkdir("/dev/pts", 0755);
	if (mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=0666") && errno != EBUSY)
		return wl_fail(t, "devpts: %m");
	error = write_file("/proc/sys/kernel/core_pattern", CORES "/core");
	if (!error)
		error = write_file("/proc/sys/kernel/hung_task_timeout_secs", "%d", HUNG_S);
	if (!error)
		error = victims_prepare();
	return error ? wl_fail(t, "preparing: %s", strerror(-error)) : 0;
}

static int run(struct trial *t)
{
	int error = 0;

	for (int64_t i = wl_param_int(t, "rounds"); i && !error; i--)
		error = one_round(t);
	check_log(t);
	/* A round that fails may leave behind who is stuck. */
	if (error)
		return error;
	check_bystanders(t);
	check_log(t);
	return 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	clear_up();
	victims_restore();
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
