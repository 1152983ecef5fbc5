// SPDX-License-Identifier: GPL-2.0
/*
 * Open N different tracepoints with perf_event_open, as a tracer that attaches BPF programs does,
 * and close them one after the other. Then a process that has N of them open is killed.
 * Needs no module; root (or CAP_PERFMON).
 * N: number of tracepoints (default 10).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char events[64];

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

static void find_tracefs(void)
{
	struct stat st;

	strcpy(events, "/sys/kernel/tracing/events/syscalls");
	if (!stat(events, &st))
		return;
	if (mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL)) {
		mkdir("/kt-tracing", 0700);
		if (mount("tracefs", "/kt-tracing", "tracefs", 0, NULL))
			die("mount tracefs");
		strcpy(events, "/kt-tracing/events/syscalls");
	}
	if (stat(events, &st))
		die(events);
}

/* Read the ids of the first n tracepoints of system calls. */
static void read_ids(long *ids, long n)
{
	DIR *dir = opendir(events);
	struct dirent *entry;
	char path[400];
	long found = 0;

	if (!dir)
		die(events);
	while (found < n && (entry = readdir(dir))) {
		FILE *file;

		if (strncmp(entry->d_name, "sys_e", 5))
			continue;
		snprintf(path, sizeof(path), "%s/%s/id", events, entry->d_name);
		file = fopen(path, "r");
		if (!file || fscanf(file, "%ld", &ids[found]) != 1)
			die(path);
		fclose(file);
		found++;
	}
	closedir(dir);
	if (found < n) {
		fprintf(stderr, "there are only %ld tracepoints of system calls\n", found);
		exit(1);
	}
}

static void open_all(const long *ids, int *fds, long n)
{
	long i;

	for (i = 0; i < n; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_TRACEPOINT,
			.size = sizeof(attr),
			.config = ids[i],
			.sample_period = 1,
			.wakeup_events = 1,
			.disabled = 1,
		};

		fds[i] = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
		if (fds[i] < 0)
			die("perf_event_open");
	}
}

int main(void)
{
	long n = atol(getenv("N") ?: "10"), i;
	struct rlimit limit = {n + 100, n + 100};
	long long begin, closing, exiting;
	int *fds, ready[2], status;
	long *ids;
	pid_t pid;
	char c;

	if (n < 1)
		return 1;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("setrlimit");
	find_tracefs();
	ids = calloc(n, sizeof(*ids));
	fds = calloc(n, sizeof(*fds));
	if (!ids || !fds || pipe(ready))
		die("setup");
	read_ids(ids, n);

	open_all(ids, fds, n);
	begin = now_ns();
	for (i = 0; i < n; i++)
		close(fds[i]);
	closing = now_ns() - begin;

	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(ready[0]);
		open_all(ids, fds, n);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1) {
		fprintf(stderr, "the second process could not open the tracepoints\n");
		return 1;
	}
	begin = now_ns();
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
	exiting = now_ns() - begin;

	printf("close_ns %lld ns\n", closing);
	printf("exit_ns %lld ns\n", exiting);
	return 0;
}
