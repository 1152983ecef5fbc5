// SPDX-License-Identifier: GPL-2.0
/*
 * N workers at once start and end short runs, as a benchmark runner with one core for each run
 * does: make a cgroup, set cpuset.cpus and cpuset.mems, move a process into it, kill the process,
 * remove the cgroup.
 * Needs cgroup v2 with the controller cpuset, and root.
 * N: workers (default 4). ROUNDS: runs of each worker (default 3). CPUSET=0: leave cpuset.cpus and
 * cpuset.mems as they are.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char root[64];
static struct {
	atomic_llong write_ns, move_ns, rmdir_ns;
} * sums;

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void put(const char *folder, const char *file, const char *text)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static void find_root(void)
{
	struct stat st;

	strcpy(root, "/sys/fs/cgroup");
	if (!stat("/sys/fs/cgroup/cgroup.controllers", &st))
		return;
	strcpy(root, "/kt-cgroup");
	mkdir(root, 0755);
	if (mount("cgroup2", root, "cgroup2", 0, NULL))
		die("mount cgroup2");
}

static void run(const char *group, int cpuset)
{
	struct timespec ms = {0, 1000000};
	long long begin;
	char text[32];
	pid_t pid;
	int tries;

	if (mkdir(group, 0755))
		die(group);
	begin = now_ns();
	if (cpuset) {
		put(group, "cpuset.cpus", "0");
		put(group, "cpuset.mems", "0");
	}
	atomic_fetch_add(&sums->write_ns, now_ns() - begin);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		for (;;)
			pause();
	snprintf(text, sizeof(text), "%d", pid);
	begin = now_ns();
	put(group, "cgroup.procs", text);
	atomic_fetch_add(&sums->move_ns, now_ns() - begin);
	kill(pid, SIGKILL);
	if (waitpid(pid, NULL, 0) != pid)
		die("waitpid");
	begin = now_ns();
	for (tries = 0; rmdir(group); tries++) {
		if (errno != EBUSY || tries == 5000)
			die("rmdir");
		nanosleep(&ms, NULL);
	}
	atomic_fetch_add(&sums->rmdir_ns, now_ns() - begin);
}

int main(void)
{
	long n = atol(getenv("N") ?: "4"), rounds = atol(getenv("ROUNDS") ?: "3"), i, j;
	int cpuset = atoi(getenv("CPUSET") ?: "1"), start[2], status;
	char parent[128], group[192], c;
	long long begin, took;

	if (n < 1 || rounds < 1)
		return 1;
	sums = mmap(NULL, sizeof(*sums), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sums == MAP_FAILED || pipe(start))
		die("setup");
	find_root();
	put(root, "cgroup.subtree_control", "+cpuset");
	snprintf(parent, sizeof(parent), "%s/kt-runs", root);
	if (mkdir(parent, 0755))
		die(parent);
	put(parent, "cgroup.subtree_control", "+cpuset");

	for (i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid)
			continue;
		close(start[1]);
		/* All begin when the other end is closed. */
		if (read(start[0], &c, 1) < 0)
			die("read");
		for (j = 0; j < rounds; j++) {
			snprintf(group, sizeof(group), "%s/%ld-%ld", parent, i, j);
			run(group, cpuset);
		}
		_exit(0);
	}
	close(start[0]);
	begin = now_ns();
	close(start[1]);
	for (i = 0; i < n; i++)
		if (wait(&status) < 0 || status) {
			fprintf(stderr, "a worker failed\n");
			return 1;
		}
	took = now_ns() - begin;
	if (rmdir(parent))
		die(parent);
	printf("all_ns %lld ns\n", took);
	printf("cpuset_write_ns %lld ns\n", (long long)sums->write_ns);
	printf("move_ns %lld ns\n", (long long)sums->move_ns);
	printf("rmdir_ns %lld ns\n", (long long)sums->rmdir_ns);
	return 0;
}
