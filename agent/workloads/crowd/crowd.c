// SPDX-License-Identifier: GPL-2.0
/*
 * A crowd of processes is killed at once. What it is doing, how it is killed, what else
 * runs, and in which groups of the scheduler the crowd and the latency probes are, are
 * parameters; `pipechain` is the same question for processes that are connected.
 *
 * A process called the parent makes the crowd, kills it and reaps it, as a shell does.
 */
#define _GNU_SOURCE /* CLONE_NEWPID */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/fuse_server.h"
#include "lib/latency_probe.h"
#include "lib/meminfo.h"

#define CROWD CGROUP_ROOT "crowd"
#define SETTLE_MS 50
#define READY_MS 300000
#define GONE_MS 120000
#define FREE_MS 5000
#define ALIVE_MS 10000
#define MAX_HOGS 64
/* What a plain fork takes, rounded up. */
#define EACH_KB 110

enum how { HOW_GROUP, HOW_INTERRUPT, HOW_CGROUP, HOW_CONTAINER };
enum state { STATE_SLEEP, STATE_SPIN, STATE_AIO, STATE_FUSE };
enum groups { GROUPS_NONE, GROUPS_SESSIONS, GROUPS_CGROUP, GROUPS_INSIDE };

struct shared {
	_Atomic int64_t ready;
	_Atomic bool spin, go;
	int64_t start_ns, returned_ns, gone_ns;
	int64_t killed; /* that the parent reaped, and that the signal ended */
	pid_t pids[];
};

static struct shared *shared;
static size_t shared_size;
static pid_t parent, server, hogs[MAX_HOGS];
static int64_t processes, memory_kb;
static enum how how;
static enum state state;
static enum groups groups;

static bool uses_cpu_controller(void)
{
	return groups == GROUPS_CGROUP || groups == GROUPS_INSIDE;
}

/* -- a process of the crowd -- */

static void touch(int64_t kb)
{
	char *memory = mmap(NULL, (kb + 1) * 1024, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		_exit(EXIT_FAILURE);
	for (int64_t at = 0; at < kb * 1024; at += 4096)
		*(volatile char *)(memory + at) = 1;
}

__attribute__((noreturn)) static void spin(void)
{
	for (;;)
		;
}

__attribute__((noreturn)) static void run_member(pid_t leader)
{
	aio_context_t context = 0;

	if (setpgid(0, leader))
		_exit(EXIT_FAILURE);
	touch(memory_kb);
	if (state == STATE_AIO && syscall(SYS_io_setup, 1, &context))
		_exit(EXIT_FAILURE);
	if (state == STATE_FUSE && open(FUSE_FILE, O_RDONLY) < 0)
		_exit(EXIT_FAILURE);
	shared->ready++;
	while (state == STATE_SPIN && !shared->spin)
		sleep_ms(5);
	if (state == STATE_SPIN)
		spin();
	for (;;)
		pause();
}

static void make_members(void)
{
	for (int64_t i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (!pid)
			run_member(i ? shared->pids[0] : 0);
		if (pid < 0)
			_exit(EXIT_FAILURE);
		/* The child does the same: whichever runs first sets the group. */
		setpgid(pid, i ? shared->pids[0] : pid);
		shared->pids[i] = pid;
	}
}

/* -- the parent -- */

/* The init of a pid namespace makes the crowd. Returns its pid. */
static pid_t start_container(void)
{
	pid_t init = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);

	if (init < 0)
		_exit(EXIT_FAILURE);
	if (!init) {
		make_members();
		for (;;)
			pause();
	}
	return init;
}

static int send_signal(pid_t init)
{
	if (how == HOW_CGROUP)
		return write_file(CROWD "/cgroup.kill", "1");
	if (how == HOW_CONTAINER)
		return kill(init, SIGKILL);
	return kill(-shared->pids[0], how == HOW_INTERRUPT ? SIGINT : SIGKILL);
}

static void reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
		shared->killed++;
}

__attribute__((noreturn)) static void run_parent(void)
{
	bool in_cgroup = uses_cpu_controller() || how == HOW_CGROUP;
	pid_t init = 0;

	if (groups == GROUPS_SESSIONS && setsid() < 0)
		_exit(EXIT_FAILURE);
	if (in_cgroup && cgroup_enter(CROWD))
		_exit(EXIT_FAILURE);
	if (how == HOW_CONTAINER)
		init = start_container();
	else
		make_members();
	if (in_cgroup && groups != GROUPS_INSIDE && cgroup_enter(CGROUP_ROOT))
		_exit(EXIT_FAILURE);
	while (!shared->go)
		sleep_ms(1);
	shared->start_ns = now_ns();
	if (send_signal(init))
		_exit(EXIT_FAILURE);
	shared->returned_ns = now_ns();
	if (init)
		reap(init);
	/* By number, newest first: in the order in which the kernel kills them. */
	for (int64_t i = init ? 0 : processes; i > 0; i--)
		reap(shared->pids[i - 1]);
	shared->gone_ns = now_ns();
	_exit(EXIT_SUCCESS);
}

/* -- in the agent -- */

static int start_hogs(struct trial *t)
{
	for (int64_t i = wl_param_int(t, "hogs"); i > 0; i--) {
		hogs[i - 1] = fork();
		if (hogs[i - 1] < 0)
			return wl_fail(t, "cannot fork: %m");
		if (!hogs[i - 1]) {
			if (groups == GROUPS_SESSIONS)
				setsid();
			spin();
		}
	}
	return 0;
}

static void stop_hogs(void)
{
	for (int i = 0; i < MAX_HOGS; i++)
		if (hogs[i] > 0) {
			kill(hogs[i], SIGKILL);
			waitpid(hogs[i], NULL, 0);
			hogs[i] = 0;
		}
}

static int start_crowd(struct trial *t)
{
	int64_t end = now_ns() + READY_MS * 1000000LL, report = now_ns();

	memset(shared, 0, shared_size);
	parent = fork();
	if (parent < 0)
		return wl_fail(t, "cannot fork: %m");
	if (!parent)
		run_parent();
	while (shared->ready < processes) {
		if (now_ns() > end || waitpid(parent, NULL, WNOHANG))
			return wl_fail(t, "%lld of %lld processes are ready",
				       (long long)shared->ready, (long long)processes);
		if (now_ns() - report > ALIVE_MS * 1000000LL) {
			report = now_ns();
			wl_alive(t, "%lld ready", (long long)shared->ready);
		}
		sleep_ms(5);
	}
	shared->spin = true;
	return 0;
}

static int wait_for_parent(struct trial *t)
{
	int64_t end = now_ns() + GONE_MS * 1000000LL, report = now_ns();
	int status;

	while (waitpid(parent, &status, WNOHANG) != parent) {
		if (now_ns() > end)
			return wl_fail(t, "not all are gone after %d s", GONE_MS / 1000);
		if (now_ns() - report > ALIVE_MS * 1000000LL) {
			report = now_ns();
			wl_alive(t, "%lld reaped", (long long)shared->killed);
		}
		sleep_ms(5);
	}
	parent = 0;
	return status ? wl_fail(t, "the parent ended with wait status %#x", (unsigned)status) : 0;
}

static void sample_probes(struct trial *t, const struct probe_results *w)
{
	wl_sample(t, "unusable_ns", w->longest_ns);
	wl_sample(t, "probe_p99_ns", w->p99_ns);
	wl_sample(t, "newcomer_ns", w->newcomer_ns);
	wl_sample(t, "newcomer_worst_ns", w->newcomer_worst_ns);
	wl_sample(t, "lone_kill_ns", w->lone_kill_ns);
	wl_sample(t, "lone_kill_worst_ns", w->lone_kill_worst_ns);
	wl_sample(t, "realtime_gap_ns", w->realtime_ns);
	wl_sample(t, "runnable_count", w->runnable);
	if (w->free_ns > shared->start_ns)
		wl_sample(t, "free_ns", w->free_ns - shared->start_ns);
}

static int kill_all(struct trial *t, const struct probe_spec *probes)
{
	int64_t expected = how == HOW_CONTAINER ? 1 : processes;
	struct probe_results seen;

	if (latency_probes_start(t, probes) || start_hogs(t))
		return -1;
	wl_settle(t, SETTLE_MS);
	wl_profile_begin(t);
	latency_probes_from();
	shared->go = true;
	if (wait_for_parent(t))
		return -1;
	wl_profile_end(t);
	latency_probes_await_memory(FREE_MS);
	stop_hogs();
	if (latency_probes_stop(t, shared->gone_ns, &seen))
		return -1;
	wl_sample(t, "signal_ns", shared->returned_ns - shared->start_ns);
	wl_sample(t, "teardown_ns", shared->gone_ns - shared->start_ns);
	if (probes->any)
		sample_probes(t, &seen);
	wl_check(t, "killed", shared->killed == expected, "%lld of %lld were killed by the signal",
		 (long long)shared->killed, (long long)expected);
	return 0;
}

static int run(struct trial *t)
{
	struct probe_spec probes = {.any = !strcmp(wl_param_str(t, "probes"), "all"),
				    .lone_kills = true,
				    .sessions = groups == GROUPS_SESSIONS};
	struct meminfo before, after;
	int error;

	wl_settle(t, SETTLE_MS);
	error = meminfo_read(&before);
	if (start_crowd(t))
		return -1;
	error = error ? error : meminfo_read(&after);
	if (error)
		return wl_fail(t, "cannot read /proc/meminfo: %s", strerror(-error));
	/* Free again: nine tenths of it. The rest is in caches of the allocators. */
	probes.free_kb = after.free + (before.free - after.free) * 9 / 10;
	wl_sample(t, "memory_kb", before.free - after.free);
	return kill_all(t, &probes);
}

static int make_cgroup(struct trial *t)
{
	int error = 0;

	if (uses_cpu_controller())
		error = write_file(CGROUP_ROOT "cgroup.subtree_control", "+cpu");
	if (!error)
		error = cgroup_make(CROWD);
	if (!error && uses_cpu_controller())
		error = write_file(CROWD "/cpu.weight", "%lld",
				   (long long)wl_param_int(t, "weight"));
	return error ? wl_fail(t, "cannot make " CROWD ": %s", strerror(-error)) : 0;
}

static int setup(struct trial *t)
{
	static const char *const hows[] = {"group", "interrupt", "cgroup", "container", NULL};
	static const char *const states[] = {"sleep", "spin", "aio", "fuse", NULL};
	static const char *const in_groups[] = {"none", "sessions", "cgroup", "inside", NULL};
	struct meminfo m;
	int64_t need;

	parent = server = 0;
	memset(hogs, 0, sizeof(hogs));
	processes = wl_param_int(t, "processes");
	memory_kb = wl_param_int(t, "each_kb");
	how = wl_param_choice(t, "how", hows);
	state = wl_param_choice(t, "state", states);
	groups = wl_param_choice(t, "groups", in_groups);
	/* Before anything fails: cleanup() unmaps it in any case. */
	shared_size = sizeof(*shared) + processes * sizeof(pid_t);
	shared = mmap(NULL, shared_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return wl_fail(t, "cannot mmap memory: %m");
	if (how == HOW_CGROUP && groups == GROUPS_INSIDE)
		return wl_fail(t, "cgroup.kill would kill the process that waits for the crowd");
	need = processes * (EACH_KB + memory_kb);
	if (raise_limits() || meminfo_read(&m) || need > m.available)
		return wl_fail(t, "the crowd needs %lld MB of memory", (long long)need / 1024);
	write_file("/proc/sys/fs/aio-max-nr", "%lld", (long long)processes * 1024);
	if (state == STATE_FUSE)
		server = fuse_start(NULL, wl_param_int(t, "flush_ms") * 1000000);
	if (server < 0)
		return wl_fail(t, "cannot mount FUSE: %s", strerror(-server));
	return make_cgroup(t);
}

static void cleanup(struct trial *t)
{
	(void)t;
	stop_hogs();
	latency_probes_drop();
	if (parent > 0) {
		kill(parent, SIGKILL);
		if (shared->pids[0] > 0)
			kill(-shared->pids[0], SIGKILL);
	}
	write_file(CROWD "/cgroup.kill", "1");
	if (server > 0)
		fuse_stop(server);
	kill_and_reap_all(parent);
	cgroup_remove(CROWD, GONE_MS);
	if (uses_cpu_controller())
		write_file(CGROUP_ROOT "cgroup.subtree_control", "-cpu");
	munmap(shared, shared_size);
}

static const char *const params[] = {"processes", "each_kb", "state", "flush_ms", "how",
				     "groups",	  "weight",  "hogs",  "probes",	  NULL};
static const struct workload crowd = {
	.name = "crowd",
	.summary = "kill a crowd of processes beside latency probes in groups of the scheduler",
	.params = params,
	.stretch = "from the signal until the last process is reaped",
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(crowd);
