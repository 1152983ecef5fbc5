// SPDX-License-Identifier: GPL-2.0
/*
 * Do tasks in a child cgroup keep the cpu.max of its parent?
 *
 *	gcc -O2 -static -o cpu-max-below cpu-max-below.c
 *	TASKS=24 QUOTA=10 PERIODS=20 CORE=0 ./cpu-max-below
 *
 * Run it as root, or as the init of a guest (then the settings are words of the kernel's command
 * line, and the guest is switched off at the end). TASKS tasks spin in a cgroup without a quota
 * inside a cgroup with QUOTA percent of one CPU. With CORE=1 all of them have one cookie of core
 * scheduling, which needs CONFIG_SCHED_CORE and CPUs that are threads of one core.
 *
 * It prints the usage over the quota for PERIODS periods after the first five, and the CPU time of
 * the task that got least over the mean. On Linux 7.2 the usage is many times the quota.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#define PR_SCHED_CORE_GET 0
#define PR_SCHED_CORE_CREATE 1
#define PR_SCHED_CORE_SHARE_TO 2
#endif
#define SCOPE_THREAD 0

#define ROOT "/sys/fs/cgroup"
#define OUTER ROOT "/outer"
#define INNER OUTER "/inner"
#define PERIOD_US 100000
#define FIRST_PERIODS 5
#define MOST_TASKS 1000

static void die(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	fflush(stdout);
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	exit(1);
}

static long setting(const char *name, long otherwise)
{
	const char *value = getenv(name);

	return value ? atol(value) : otherwise;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static int64_t value(const char *path, const char *name)
{
	char text[4096] = "", *at;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		die(path);
	close(fd);
	at = strstr(text, name);
	return at ? atoll(at + strlen(name)) : 0;
}

/* The CPU time of a task, from the first number of its schedstat. */
static int64_t cpu_ns(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	return value(path, "");
}

static void sleep_us(int64_t us)
{
	struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	while (nanosleep(&time, &time) && errno == EINTR)
		;
}

static pid_t spin(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	put(INNER "/cgroup.procs", "0");
	for (;;)
		;
}

static void set_up(long quota)
{
	char text[64];

	if (getpid() == 1) {
		mkdir("/proc", 0755);
		mkdir("/sys", 0755);
		if (mount("proc", "/proc", "proc", 0, NULL) ||
		    mount("sysfs", "/sys", "sysfs", 0, NULL) ||
		    mount("cgroup2", ROOT, "cgroup2", 0, NULL))
			die("mount");
	}
	put(ROOT "/cgroup.subtree_control", "+cpu");
	if (mkdir(OUTER, 0755))
		die(OUTER);
	put(OUTER "/cgroup.subtree_control", "+cpu");
	if (mkdir(INNER, 0755))
		die(INNER);
	snprintf(text, sizeof(text), "%ld %d", quota * PERIOD_US / 100, PERIOD_US);
	put(OUTER "/cpu.max", text);
}

/* Gives this task a cookie, which its children inherit. */
static void take_cookie(void)
{
	unsigned long cookie = 0;

	if (prctl(PR_SCHED_CORE, PR_SCHED_CORE_CREATE, 0, SCOPE_THREAD, 0) ||
	    prctl(PR_SCHED_CORE, PR_SCHED_CORE_GET, 0, SCOPE_THREAD, &cookie))
		die("no cookie of core scheduling");
	printf("core scheduling: cookie %#lx\n", cookie);
}

/* A process with a cookie starts the tasks, so that this one has none and is not held up. */
static void start(pid_t *pids, long tasks, int core)
{
	int ends[2];
	pid_t pid;

	if (pipe(ends))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		if (core)
			take_cookie();
		fflush(stdout);
		for (long i = 0; i < tasks; i++) {
			pids[0] = spin();
			if (write(ends[1], pids, sizeof(*pids)) < 0)
				_exit(1);
		}
		for (;;)
			pause();
	}
	for (long i = 0; i < tasks; i++)
		if (read(ends[0], pids + i, sizeof(*pids)) != sizeof(*pids))
			die("read");
	pids[tasks] = pid;
}

int main(void)
{
	static pid_t pids[MOST_TASKS + 1];
	static int64_t before_ns[MOST_TASKS];
	long tasks = setting("TASKS", 24), quota = setting("QUOTA", 10);
	long periods = setting("PERIODS", 20);
	int64_t used_us, sum_ns = 0, least_ns = INT64_MAX;
	double of_quota, of_mean;

	if (tasks < 1 || tasks > MOST_TASKS)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	set_up(quota);
	start(pids, tasks, setting("CORE", 0) != 0);
	sleep_us(FIRST_PERIODS * PERIOD_US);
	used_us = value(OUTER "/cpu.stat", "usage_usec ");
	for (long i = 0; i < tasks; i++)
		before_ns[i] = cpu_ns(pids[i]);
	sleep_us(periods * PERIOD_US);
	used_us = value(OUTER "/cpu.stat", "usage_usec ") - used_us;
	for (long i = 0; i < tasks; i++) {
		int64_t ns = cpu_ns(pids[i]) - before_ns[i];

		sum_ns += ns;
		least_ns = ns < least_ns ? ns : least_ns;
	}
	of_quota = (double)used_us / ((double)periods * (double)quota * PERIOD_US / 100);
	of_mean = sum_ns ? (double)least_ns * (double)tasks / (double)sum_ns : 0;
	printf("%ld CPUs, %ld tasks, quota %ld%%, %ld periods: usage %.3f of the quota, "
	       "the least %.3f of the mean\n",
	       sysconf(_SC_NPROCESSORS_ONLN), tasks, quota, periods, of_quota, of_mean);
	put(OUTER "/cpu.max", "max");
	for (long i = 0; i <= tasks; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	return rmdir(INNER) || rmdir(OUTER);
}
