// SPDX-License-Identifier: GPL-2.0
/*
 * Do others hang while a task that is out of CPU quota holds a per-CPU rw-semaphore for reading?
 *
 *	gcc -O2 -static -o throttled-reader throttled-reader.c
 *	WHAT=uprobe QUOTA_MS=1 SPINNERS=20 ./throttled-reader
 *
 * Run it as root, or as the init of a guest (then the settings are words of the kernel's command
 * line, and the guest is switched off at the end). In a cgroup with QUOTA_MS of 100 ms, FORKERS
 * processes fork again and again, and SPINNERS threads use the rest of the quota. Outside of the
 * cgroup a writer needs the semaphore five times a second, and a bystander forks 20 times a second
 * for SECONDS.
 *
 * - WHAT=uprobe: fork() holds dup_mmap_sem while it copies the page tables, here of MB megabytes.
 *   The writer registers a uprobe on a file that nobody has mapped.
 * - WHAT=cgroup: fork() holds cgroup_threadgroup_rwsem from cgroup_can_fork() to
 *   cgroup_post_fork(). The writer moves a process to another cgroup.
 *
 * Printed are the longest operation of the writer, the longest fork of the bystander, the forks in
 * the cgroup, and how many tasks the kernel reported as hung (HUNG_S: its timeout). With SHOW_MS
 *the kernel's log also has the stacks of all tasks, once, when the writer has waited for so long.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"
#define GROUP ROOT "/limited"
#define PROBED "/probed-file"
#define UPROBE_TYPE "/sys/bus/event_source/devices/uprobe/type"
#define TIMEOUT "/proc/sys/kernel/hung_task_timeout_secs"
#define PERIOD_US 100000
#define STACK_BYTES (64 << 10)
#define WRITE_EVERY_MS 200
#define FORK_EVERY_MS 50

static struct shared {
	volatile bool stop;
	volatile int64_t forks;
	/* What begins before there is a quota does not count. */
	volatile double from_ms;
	volatile double writes_since_ms; /* 0: the writer does not wait */
	/* One task writes each. */
	volatile double write_ms, fork_ms;
} * shared;

static char *memory;
static long quota_ms, spinners, forkers, megabytes, seconds;
static const char *what;

static void finish(int status)
{
	fflush(stdout);
	if (getpid() == 1)
		reboot(RB_POWER_OFF);
	exit(status);
}

static void die(const char *where)
{
	printf("%s: %s\n", where, strerror(errno));
	finish(1);
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void sleep_ms(long ms)
{
	struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static long setting(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? atol(text) : otherwise;
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static long get(const char *path)
{
	char text[32] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		die(path);
	close(fd);
	return atol(text);
}

static pid_t start(void (*body)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	body();
	_exit(0);
}

/* -- in the cgroup -- */

static void *spin(void *unused)
{
	for (;;)
		;
	return unused;
}

static void fork_forever(void)
{
	put(GROUP "/cgroup.procs", "0");
	for (;;) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			_exit(1);
		shared->forks++;
	}
}

static void spin_forever(void)
{
	pthread_attr_t attributes;
	pthread_t id;

	put(GROUP "/cgroup.procs", "0");
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (long i = 0; i < spinners; i++)
		if (pthread_create(&id, &attributes, spin, NULL))
			_exit(1);
	for (;;)
		pause();
}

/* -- outside -- */

static void note(volatile double *longest, double since_ms)
{
	double ms = now_ms() - since_ms;

	if (shared->from_ms > 0 && since_ms >= shared->from_ms && ms > *longest)
		*longest = ms;
}

static void probe(void)
{
	struct perf_event_attr attributes = {0};
	int fd;

	attributes.size = sizeof(attributes);
	attributes.type = get(UPROBE_TYPE);
	attributes.uprobe_path = (uintptr_t)PROBED;
	fd = syscall(SYS_perf_event_open, &attributes, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		die("perf_event_open");
	close(fd);
}

static void move(pid_t pid, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	put(number % 2 ? ROOT "/one/cgroup.procs" : ROOT "/two/cgroup.procs", text);
}

static void sleep_forever(void)
{
	for (;;)
		pause();
}

static void write_often(void)
{
	pid_t moved = start(sleep_forever);

	for (int i = 0; !shared->stop; i++) {
		double since_ms = now_ms();

		shared->writes_since_ms = since_ms;
		if (strcmp(what, "cgroup"))
			probe();
		else
			move(moved, i);
		shared->writes_since_ms = 0;
		note(&shared->write_ms, since_ms);
		sleep_ms(WRITE_EVERY_MS);
	}
	kill(moved, SIGKILL);
}

static void fork_often(void)
{
	while (!shared->stop) {
		double since_ms = now_ms();
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		note(&shared->fork_ms, since_ms);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			_exit(1);
		sleep_ms(FORK_EVERY_MS);
	}
}

/* -- the run -- */

static int hung_tasks(void)
{
	char text[1024];
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC), hung = 0;

	for (ssize_t n; (n = read(fd, text, sizeof(text) - 1)) > 0 || (n < 0 && errno == EPIPE);) {
		text[n > 0 ? n : 0] = '\0';
		hung += strstr(text, "INFO: task ") && strstr(text, " blocked for more than ");
	}
	close(fd);
	return hung;
}

static void prepare(void)
{
	static const char *const groups[] = {GROUP, ROOT "/one", ROOT "/two"};
	char text[64];
	int fd;

	for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++)
		if (mkdir(groups[i], 0755) && errno != EEXIST)
			die(groups[i]);
	fd = open(PROBED, O_RDWR | O_CREAT | O_CLOEXEC, 0755);
	if (fd < 0 || ftruncate(fd, 4096))
		die(PROBED);
	close(fd);
	snprintf(text, sizeof(text), "%ld", setting("HUNG_S", 10));
	put(TIMEOUT, text);
	put("/proc/sys/kernel/hung_task_warnings", "-1");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		die("mmap");
}

static void limit(void)
{
	char text[64];

	snprintf(text, sizeof(text), "%ld %d", quota_ms * 1000, PERIOD_US);
	put(GROUP "/cpu.max", quota_ms ? text : "max");
}

static void wait_and_show(void)
{
	double end_ms = now_ms() + (double)seconds * 1e3;
	long show_ms = setting("SHOW_MS", 0);

	for (double since_ms; now_ms() < end_ms; sleep_ms(100)) {
		since_ms = shared->writes_since_ms;
		if (!show_ms || since_ms <= 0 || now_ms() - since_ms < (double)show_ms)
			continue;
		put("/proc/sysrq-trigger", "t");
		show_ms = 0;
	}
}

/* Only the forkers have the memory: the others start before it exists. */
static void run(void)
{
	pid_t writer = start(write_often), bystander = start(fork_often),
	      spinner = start(spin_forever);
	pid_t forking[64];
	int64_t forks;

	memory = mmap(NULL, megabytes << 20 ?: 1, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED || forkers > 64)
		die("memory");
	madvise(memory, megabytes << 20, MADV_NOHUGEPAGE);
	for (long i = 0; i < forkers; i++)
		forking[i] = start(fork_forever);
	sleep_ms(1000);
	limit();
	shared->from_ms = now_ms();
	forks = shared->forks;
	wait_and_show();
	printf("forks %lld count\n", (long long)(shared->forks - forks));
	shared->stop = true;
	put(GROUP "/cpu.max", "max");
	for (long i = 0; i < forkers; i++)
		kill(forking[i], SIGKILL);
	kill(spinner, SIGKILL);
	if (waitpid(writer, NULL, 0) != writer || waitpid(bystander, NULL, 0) != bystander)
		die("wait");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getpid() == 1) {
		mkdir("/proc", 0755);
		mkdir("/sys", 0755);
		if (mount("proc", "/proc", "proc", 0, NULL) ||
		    mount("sysfs", "/sys", "sysfs", 0, NULL) ||
		    mount("cgroup2", ROOT, "cgroup2", 0, NULL))
			die("mount");
	}
	what = getenv("WHAT") ?: "uprobe";
	quota_ms = setting("QUOTA_MS", 1);
	spinners = setting("SPINNERS", 20);
	forkers = setting("FORKERS", 1);
	megabytes = setting("MB", strcmp(what, "cgroup") ? 128 : 0);
	seconds = setting("SECONDS", 60);
	put(ROOT "/cgroup.subtree_control", "+cpu");
	prepare();
	run();
	printf("writer %.1f ms\n", shared->write_ms);
	printf("bystander %.1f ms\n", shared->fork_ms);
	printf("hung_tasks %d count\n", hung_tasks());
	finish(0);
}
