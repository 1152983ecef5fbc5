// SPDX-License-Identifier: GPL-2.0
/*
 * Make, and end, mount namespaces while the system has N mounts: unshare, make all mounts private,
 * exit. Some one after the other, then STORM at once.
 * Needs no module; root.
 * N: mounts beside those of the system (default 250). ROUNDS: namespaces one after the other
 * (default 10). STORM: namespaces at once (default 8).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BASE "/kt-mounts"

struct times {
	long long unshared, made_private, exits;
};

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

/* A process that gets a mount namespace of its own, and ends with it. */
static pid_t start(struct times *times)
{
	pid_t pid = fork();
	long long begin;

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	begin = now_ns();
	if (unshare(CLONE_NEWNS))
		_exit(1);
	times->unshared = now_ns() - begin;
	begin = now_ns();
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		_exit(2);
	times->made_private = now_ns() - begin;
	times->exits = now_ns();
	_exit(0);
}

static void finish(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "a process with a mount namespace failed: %#x\n", status);
		exit(1);
	}
}

int main(void)
{
	long n = atol(getenv("N") ?: "250"), rounds = atol(getenv("ROUNDS") ?: "10");
	long storm = atol(getenv("STORM") ?: "8"), i;
	long long unshared = 0, made_private = 0, exits = 0, begin, stormed;
	struct times *times;
	char path[64];
	pid_t *pids;

	if (n < 1 || rounds < 1 || storm < 1)
		return 1;
	times = mmap(NULL, (storm + 1) * sizeof(*times), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pids = calloc(storm, sizeof(*pids));
	if (times == MAP_FAILED || !pids)
		die("setup");
	mkdir(BASE, 0755);
	if (mount("tmpfs", BASE, "tmpfs", 0, NULL))
		die("mount");
	mkdir(BASE "/from", 0755);
	/* Shared, as systemd makes all mounts of a system. */
	if (mount(NULL, BASE, NULL, MS_SHARED, NULL))
		die("make shared");
	for (i = 0; i < n; i++) {
		snprintf(path, sizeof(path), BASE "/%ld", i);
		if (mkdir(path, 0755) || mount(BASE "/from", path, NULL, MS_BIND, NULL))
			die(path);
	}

	for (i = 0; i < rounds; i++) {
		finish(start(&times[storm]));
		exits += now_ns() - times[storm].exits;
		unshared += times[storm].unshared;
		made_private += times[storm].made_private;
	}

	begin = now_ns();
	for (i = 0; i < storm; i++)
		pids[i] = start(&times[i]);
	for (i = 0; i < storm; i++)
		finish(pids[i]);
	stormed = now_ns() - begin;

	printf("unshare_ns %lld ns\n", unshared / rounds);
	printf("private_ns %lld ns\n", made_private / rounds);
	printf("exit_ns %lld ns\n", exits / rounds);
	printf("storm_ns %lld ns\n", stormed);
	fflush(stdout);
	umount2(BASE, MNT_DETACH);
	return 0;
}
