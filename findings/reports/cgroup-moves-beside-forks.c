// SPDX-License-Identifier: GPL-2.0
/*
 * A process is moved between two cgroups N times, with a pause after each move, while another one
 * forks children and waits for them. Does a fork wait while a move waits for a grace period?
 * Needs cgroup v2 and root.
 * N: number of moves (default 50). PAUSE_MS: pause after each (default 20).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WHERE "/kt-cgroup"

static struct {
	volatile int stop;
	long forks;
	double longest_ms;
} *shared;

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void move(const char *group, pid_t pid)
{
	char path[64], text[16];
	int fd;

	snprintf(path, sizeof(path), WHERE "/%s/cgroup.procs", group);
	snprintf(text, sizeof(text), "%d", pid);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static pid_t start(void (*run)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid)
		run();
	return pid;
}

static void sleep_forever(void)
{
	for (;;)
		pause();
}

static void fork_all_the_time(void)
{
	while (!shared->stop) {
		double began = now_ms(), took;
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid)
			_exit(0);
		if (waitpid(pid, NULL, 0) < 0)
			die("waitpid");
		took = now_ms() - began;
		shared->forks++;
		if (took > shared->longest_ms)
			shared->longest_ms = took;
		usleep(500);
	}
	_exit(0);
}

int main(void)
{
	int n = getenv("N") ? atoi(getenv("N")) : 50, i;
	int pause_ms = getenv("PAUSE_MS") ? atoi(getenv("PAUSE_MS")) : 20;
	double moving_ms = 0;
	pid_t moved, forker;

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	if (mkdir(WHERE, 0755) || mount("none", WHERE, "cgroup2", 0, NULL) ||
	    mkdir(WHERE "/a", 0755) || mkdir(WHERE "/b", 0755))
		die(WHERE);
	moved = start(sleep_forever);
	forker = start(fork_all_the_time);
	for (i = 0; i < n; i++) {
		double began;

		usleep(pause_ms * 1000);
		began = now_ms();
		move(i % 2 ? "a" : "b", moved);
		moving_ms += now_ms() - began;
	}
	shared->stop = 1;
	waitpid(forker, NULL, 0);
	kill(moved, SIGKILL);
	waitpid(moved, NULL, 0);
	printf("moving %.3f ms\n", moving_ms);
	printf("longest_fork %.3f ms\n", shared->longest_ms);
	printf("forks %ld count\n", shared->forks);
	return 0;
}
