// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include "victims.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/tasks.h"
#include "rings.h"

#define FOLDER "/tmp/throttle_stress"
#define NR_FILES 400
#define WINDOW_MS 600
/* In this window the smallest quota is 6 ms. A tick that comes late adds some. */
#define NEXT_TO_NOTHING_NS 20000000
#define SOME_NS 40000000
#define MAP_BYTES (64 * 4096)
#define CROWD 1000
#define CROWD_STACK_BYTES (16 << 10)

struct victims_shared *victims_shared;

int quota_set(const char *cgroup, const char *quota)
{
	char file[256];

	snprintf(file, sizeof(file), "%s/cpu.max", cgroup);
	return write_file(file, "%s", quota);
}

int quota_allow_below(const char *cgroup)
{
	char file[256];

	snprintf(file, sizeof(file), "%s/cgroup.subtree_control", cgroup);
	return write_file(file, "+cpu");
}

/* -- what victims do -- */

static void list_folder(void)
{
	static char buffer[1 << 16];
	int fd = open(FOLDER, O_RDONLY | O_DIRECTORY);

	while (syscall(SYS_getdents64, fd, buffer, sizeof(buffer)) > 0)
		;
	close(fd);
}

static void fork_once(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

static void map_once(void)
{
	char *at =
		mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return;
	for (int i = 0; i < MAP_BYTES; i += 4096)
		at[i] = 1;
	munmap(at, MAP_BYTES);
}

/* From here on the process has no quota, but its workers do: they are not real-time tasks. */
static int prepare_read(void)
{
	struct sched_param param = {.sched_priority = 1};

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param))
		return -errno;
	return ring_read_once();
}

/* After the first step its worker has used a quarter of a second, and is idle. */
static void exec_once(void)
{
	static char *const arguments[] = {"kteardown-agent", "--help", NULL};
	static bool waited;
	int null;

	if (!waited) {
		while (!ring_read_done())
			sleep_ms(1);
		sleep_ms(5);
		waited = true;
		return;
	}
	null = open("/dev/null", O_WRONLY);
	dup2(null, STDOUT_FILENO);
	execv("/proc/self/exe", arguments);
	_exit(EXIT_FAILURE);
}

static void do_once(enum victim_work work)
{
	switch (work) {
	case VICTIM_LIST:
		return list_folder();
	case VICTIM_FORK:
		return fork_once();
	case VICTIM_MAP:
		return map_once();
	case VICTIM_NAP:
		return sleep_ms(3);
	case VICTIM_SWITCHED:
		if (!victims_shared->spin)
			sleep_ms(10);
		return;
	case VICTIM_CALL:
		return read_for_long();
	case VICTIM_EXECS:
		return exec_once();
	case VICTIM_CROWD:
	case VICTIM_POLLED:
	case VICTIM_READS:
	case VICTIM_WRITES:
	case VICTIM_READ:
		return sleep_ms(10);
	default:
		return;
	}
}

static void *spin_for_ever(void *unused)
{
	for (;;)
		(*(volatile int *)unused)++;
	return NULL;
}

static int start_crowd(void)
{
	static volatile int spun;
	pthread_attr_t attributes;
	pthread_t id;
	int error = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, CROWD_STACK_BYTES);
	for (int i = 0; i < CROWD && !error; i++)
		error = pthread_create(&id, &attributes, spin_for_ever, (void *)&spun);
	return -error;
}

static int prepare(enum victim_work work)
{
	switch (work) {
	case VICTIM_RING:
		return ring_waits();
	case VICTIM_POLLED:
		return ring_polled();
	case VICTIM_READS:
		return ring_reads();
	case VICTIM_WRITES:
		return ring_writes();
	case VICTIM_READ:
	case VICTIM_EXECS:
		return prepare_read();
	case VICTIM_CROWD:
		return start_crowd();
	default:
		return 0;
	}
}

static void run_victim(int place, enum victim_work work)
{
	if (prepare(work))
		_exit(EXIT_FAILURE);
	while (!victims_shared->finish) {
		do_once(work);
		victims_shared->progress[place]++;
	}
	_exit(VICTIM_EXIT_OK);
}

/* -- starting and ending victims -- */

/* Like fork(), but the child is in the cgroup from its first instruction. */
static pid_t fork_into(const char *cgroup)
{
	int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = fd};
	pid_t pid;

	if (fd < 0)
		return -errno;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		pid = -errno;
	close(fd);
	return pid;
}

int victim_put(int place, enum victim_work work, const char *cgroup)
{
	pid_t pid = fork_into(cgroup);

	if (!pid)
		run_victim(place, work);
	if (pid < 0)
		return pid;
	victims_shared->pids[place] = pid;
	return 0;
}

int victim_gone(pid_t pid)
{
	for (int i = 0; i < MAX_VICTIMS; i++)
		if (victims_shared->pids[i] == pid) {
			victims_shared->pids[i] = 0;
			return i;
		}
	return -1;
}

int victim_move(pid_t pid, const char *cgroup)
{
	char file[256];

	snprintf(file, sizeof(file), "%s/cgroup.procs", cgroup);
	return write_file(file, "%d", (int)pid);
}

void victim_pin(int place, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int i = 0; i < 2; i++)
		if (cpu < 0 || cpu == i)
			CPU_SET(i, &set);
	if (victims_shared->pids[place])
		sched_setaffinity(victims_shared->pids[place], sizeof(set), &set);
}

void victims_pin(int cpu)
{
	for (int i = 0; i < MAX_VICTIMS; i++)
		victim_pin(i, cpu);
}

static bool none_left(void)
{
	for (int i = 0; i < MAX_VICTIMS; i++)
		if (victims_shared->pids[i])
			return false;
	return true;
}

bool victims_end(bool kill_them)
{
	int64_t end = now_ns() + QUOTA_DEATH_MS * 1000000LL;
	bool good = true;
	int status;
	pid_t pid;

	victims_shared->finish = !kill_them;
	for (int i = 0; kill_them && i < MAX_VICTIMS; i++)
		if (victims_shared->pids[i])
			kill(victims_shared->pids[i], SIGKILL);
	while (!none_left()) {
		pid = waitpid(-1, &status, WNOHANG);
		if (pid <= 0 && now_ns() > end)
			return false;
		if (pid <= 0) {
			sleep_ms(1);
			continue;
		}
		if (victim_gone(pid) >= 0 && !kill_them)
			good = good && WIFEXITED(status) && WEXITSTATUS(status) == VICTIM_EXIT_OK;
	}
	victims_shared->finish = false;
	return good;
}

/* -- do they run? -- */

int64_t victim_cpu_ns(pid_t pid)
{
	struct timespec at;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &at))
		return -1;
	return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void look(int64_t cpu_ns[MAX_VICTIMS])
{
	for (int i = 0; i < MAX_VICTIMS; i++)
		cpu_ns[i] = victims_shared->pids[i] ? victim_cpu_ns(victims_shared->pids[i]) : 0;
}

bool victims_run(void)
{
	int64_t end = now_ns() + QUOTA_PATIENCE_MS * 1000000LL;
	int64_t before[MAX_VICTIMS], now[MAX_VICTIMS];
	bool all;

	look(before);
	do {
		sleep_ms(10);
		look(now);
		all = true;
		for (int i = 0; i < MAX_VICTIMS; i++)
			if (victims_shared->pids[i])
				all = all && now[i] - before[i] >= SOME_NS;
	} while (!all && now_ns() < end);
	return all;
}

const char *victims_stuck(void)
{
	static char text[128];
	int64_t end = now_ns() + QUOTA_PATIENCE_MS * 1000000LL;
	int64_t used[MAX_VICTIMS];
	uint64_t before[MAX_VICTIMS];

	look(used);
	for (int i = 0; i < MAX_VICTIMS; i++)
		before[i] = victims_shared->progress[i];
	for (int i = 0; i < MAX_VICTIMS; i++)
		while (victims_shared->pids[i] && victims_shared->progress[i] == before[i]) {
			pid_t pid = victims_shared->pids[i];

			if (now_ns() > end) {
				snprintf(text, sizeof(text), "victim %d (%c) got %lld us", i,
					 task_state(pid), (victim_cpu_ns(pid) - used[i]) / 1000LL);
				return text;
			}
			sleep_ms(1);
		}
	return NULL;
}

bool victims_throttled(void)
{
	int64_t end = now_ns() + QUOTA_PATIENCE_MS * 1000000LL;
	int64_t before[MAX_VICTIMS], now[MAX_VICTIMS];
	bool all;

	do {
		look(before);
		sleep_ms(WINDOW_MS);
		look(now);
		all = true;
		for (int i = 0; i < MAX_VICTIMS; i++)
			all = all && now[i] >= 0 && now[i] - before[i] <= NEXT_TO_NOTHING_NS;
	} while (!all && now_ns() < end);
	return all;
}

/* -- shared memory and files -- */

int victims_setup(void)
{
	char name[64];

	victims_shared = mmap(NULL, sizeof(*victims_shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (victims_shared == MAP_FAILED)
		return -errno;
	mkdir("/tmp", 0777);
	if (mkdir(FOLDER, 0755) && errno != EEXIST)
		return -errno;
	for (int i = 0; i < NR_FILES; i++) {
		int fd;

		snprintf(name, sizeof(name), FOLDER "/%d", i);
		fd = open(name, O_CREAT | O_WRONLY, 0644);
		if (fd < 0)
			return -errno;
		close(fd);
	}
	return 0;
}

void victims_cleanup(void)
{
	char name[64];

	for (int i = 0; i < NR_FILES; i++) {
		snprintf(name, sizeof(name), FOLDER "/%d", i);
		unlink(name);
	}
	rmdir(FOLDER);
}

/* -- reporting tasks that should be gone -- */

const char *victims_left(void)
{
	static char text[512];
	int64_t before[MAX_VICTIMS], now[MAX_VICTIMS];
	int left = 0, len = 0;

	look(before);
	sleep_ms(2000);
	look(now);
	for (int i = 0; i < MAX_VICTIMS; i++) {
		char file[64], cgroup[160];
		pid_t pid = victims_shared->pids[i];

		if (!pid || left++ >= 4)
			continue;
		snprintf(file, sizeof(file), "/proc/%d/cgroup", pid);
		if (read_file(file, cgroup, sizeof(cgroup)) < 0)
			cgroup[0] = '\0';
		cgroup[strcspn(cgroup, "\n")] = '\0';
		len += snprintf(text + len, sizeof(text) - len, ", %c in %.100s gets %lld us",
				task_state(pid), cgroup, (long long)(now[i] - before[i]) / 1000);
	}
	snprintf(text + len, sizeof(text) - len, "; %d left", left);
	return text;
}
