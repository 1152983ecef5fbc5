// SPDX-License-Identifier: GPL-2.0
/*
 * A group is killed, and while it exits the OOM killer chooses one task of it and needs
 * its memory at once: for how many others does it still wait?
 */
#define _GNU_SOURCE /* SCHED_RESET_ON_FORK */
#include <errno.h>
#include <poll.h>
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

#define SMALL CGROUP_ROOT "oomvictim"
#define MB (1024L * 1024)
/*
 * The victim is the largest process in the cgroup, and the allocator alone cannot fill the
 * cgroup.
 */
#define LIMIT_MB 16
#define VICTIM_MB 10
#define CHARGED_MB 5
#define ALLOCATOR_MB 4
/* Of the allocator and the group. */
#define CPU 1
#define READY_MS 60000
#define GONE_MS 60000

struct shared {
	_Atomic int ready;
	_Atomic bool go;
};

static struct shared *shared;
static pid_t leader, allocator;
static int64_t processes;

/* The number of tasks in the guest that are not reaped; -1: unknown. */
static int64_t count_tasks(void)
{
	char text[128], *slash;

	if (read_file("/proc/loadavg", text, sizeof(text)) < 0)
		return -1;
	slash = strchr(text, '/');
	return slash ? strtoll(slash + 1, NULL, 10) : -1;
}

/* Real-time priorities: both run before the group, the observer before the allocator. */
enum { ALLOCATOR = 1, OBSERVER };

static int set_priority(int priority)
{
	struct sched_param first = {.sched_priority = priority};

	return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first) ? -errno : 0;
}

static void touch(long bytes)
{
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (long at = 0; memory != MAP_FAILED && at < bytes; at += 4096)
		*(volatile char *)(memory + at) = 1;
}

static void run_member(bool victim)
{
	setpgid(0, leader);
	stay_on_cpu(CPU);
	if (victim && !cgroup_enter(SMALL))
		touch(VICTIM_MB * MB);
	shared->ready++;
	for (;;)
		pause();
}

/*
 * Kills the group and at once wants more memory than the victim leaves. All processes of
 * the group are bound to the allocator's CPU, so none of them runs before memory has run
 * out: if one were gone by then, it could not become the victim. Afterwards the allocator
 * has a normal priority and tries until it gets the memory.
 */
static void run_allocator(void)
{
	stay_on_cpu(CPU);
	set_priority(ALLOCATOR);
	if (!cgroup_enter(SMALL)) {
		touch(CHARGED_MB * MB);
		shared->ready++;
	}
	while (!shared->go)
		sleep_ms(1);
	kill(-leader, SIGKILL);
	touch(ALLOCATOR_MB * MB);
	for (;;)
		pause();
}

/*
 * Returns the pid of the victim, or -1 if a fork failed. The victim is neither among the
 * oldest nor among the youngest processes: whatever the order in which they exit, many
 * exit before it.
 */
static pid_t start_group(void)
{
	pid_t victim = -1;

	for (int64_t i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return -1;
		if (!pid)
			run_member(i == processes / 4);
		if (i == processes / 4)
			victim = pid;
		leader = leader ? leader : pid;
		/* The child does the same: whichever runs first sets the group. */
		setpgid(pid, leader);
	}
	allocator = fork();
	if (!allocator)
		run_allocator();
	return allocator < 0 ? -1 : victim;
}

static int wait_until_ready(struct trial *t)
{
	int64_t end = now_ns() + READY_MS * 1000000LL;

	while (shared->ready < processes + 1) {
		if (now_ns() > end)
			return wl_fail(t, "%d of %lld processes are ready", shared->ready,
				       (long long)processes + 1);
		sleep_ms(5);
	}
	return 0;
}

/* While a child is left, waitpid() returns 0. */
static bool all_gone(void)
{
	for (int64_t end = now_ns() + GONE_MS * 1000000LL; !waitpid(-1, NULL, WNOHANG); sleep_ms(5))
		if (now_ns() > end)
			return false;
	return true;
}

static int64_t out_of_memory_count(void)
{
	return cgroup_value(SMALL, "memory.events", "oom");
}

static bool wait_until_out_of_memory(int64_t count_before)
{
	for (int64_t end = now_ns() + GONE_MS * 1000000LL; out_of_memory_count() <= count_before;
	     sleep_ms(1))
		if (now_ns() > end)
			return false;
	return true;
}

/* From the signal on. Returns 0 or what wl_fail() returns. */
static int kill_and_count(struct trial *t, int pidfd)
{
	struct pollfd victim = {.fd = pidfd, .events = POLLIN};
	struct sched_param other = {0};
	int64_t from_ns, tasks, count = out_of_memory_count();

	shared->go = true;
	if (!wl_check(t, "memory_ran_out", wait_until_out_of_memory(count),
		      "memory.events still counts %lld", (long long)count))
		return 0;
	tasks = count_tasks();
	from_ns = now_ns();
	sched_setscheduler(allocator, SCHED_OTHER, &other);
	if (poll(&victim, 1, GONE_MS) != 1)
		return wl_fail(t, "the victim has not exited after %d s", GONE_MS / 1000);
	wl_sample(t, "victim_ns", now_ns() - from_ns);
	wl_sample(t, "ahead_count", tasks - count_tasks());
	return 0;
}

static int run(struct trial *t)
{
	pid_t victim;
	int error, pidfd;

	memset(shared, 0, sizeof(*shared));
	victim = start_group();
	if (victim < 0)
		return wl_fail(t, "cannot fork: %m");
	if (wait_until_ready(t))
		return -1;
	pidfd = syscall(SYS_pidfd_open, victim, 0);
	if (pidfd < 0)
		return wl_fail(t, "cannot open a pidfd: %m");
	wl_settle(t, 20);
	error = kill_and_count(t, pidfd);
	close(pidfd);
	kill(allocator, SIGKILL);
	if (!error)
		wl_check(t, "all_gone", all_gone(), "some are left after %d s", GONE_MS / 1000);
	leader = 0;
	return error;
}

static int setup(struct trial *t)
{
	int error;

	leader = allocator = 0;
	processes = wl_param_int(t, "processes");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		return wl_fail(t, "cannot mmap memory: %m");
	error = raise_limits();
	if (!error)
		error = write_file(CGROUP_ROOT "cgroup.subtree_control", "+memory");
	if (!error)
		error = cgroup_make(SMALL);
	if (!error)
		error = write_file(SMALL "/memory.max", "%ld", LIMIT_MB * MB);
	if (error)
		return wl_fail(t, "cannot prepare " SMALL ": %s", strerror(-error));
	/* Exited tasks need no wait(): the kernel releases each of them. */
	signal(SIGCHLD, SIG_IGN);
	error = set_priority(OBSERVER);
	return error ? wl_fail(t, "cannot set SCHED_FIFO: %s", strerror(-error)) : 0;
}

static void cleanup(struct trial *t)
{
	struct sched_param other = {0};

	(void)t;
	sched_setscheduler(0, SCHED_OTHER, &other);
	signal(SIGCHLD, SIG_DFL);
	if (leader > 0)
		kill(-leader, SIGKILL);
	if (allocator > 0)
		kill(allocator, SIGKILL);
	kill_and_reap_all(0);
	cgroup_remove(SMALL, GONE_MS);
	write_file(CGROUP_ROOT "cgroup.subtree_control", "-memory");
}

static const char *const params[] = {"processes", NULL};
static const struct workload oomvictim = {
	.name = "oomvictim",
	.summary = "kill a group, one task of which the OOM killer then chooses",
	.params = params,
	.setup = setup,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(oomvictim);
