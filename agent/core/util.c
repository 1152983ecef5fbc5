// SPDX-License-Identifier: GPL-2.0
/* Utilities for all files of the agent: time, files, CPUs, limits, random numbers, reaping. */
#define _GNU_SOURCE /* CPU sets */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

void sleep_ms(int64_t ms)
{
	sleep_ns(ms * 1000000);
}

void sleep_ns(int64_t ns)
{
	struct timespec left = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

int write_all(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		at += n;
		len -= n;
	}
	return 0;
}

int read_all(int fd, void *data, size_t len)
{
	char *at = data;

	while (len) {
		ssize_t n = read(fd, at, len);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (n == 0)
			return -EPIPE;
		at += n;
		len -= n;
	}
	return 0;
}

int write_file(const char *path, const char *text, ...)
{
	char buffer[256];
	va_list args;
	ssize_t n;
	int fd, len, error = 0;

	va_start(args, text);
	len = vsnprintf(buffer, sizeof(buffer), text, args);
	va_end(args);
	if (len < 0 || (size_t)len >= sizeof(buffer))
		return -E2BIG;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Written once and not again: each write to such a file has an effect. */
	n = write(fd, buffer, len);
	if (n < 0)
		error = -errno;
	else if (n != len)
		error = -EIO;
	close(fd);
	return error;
}

int read_file(const char *path, char *text, size_t size)
{
	size_t len = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	text[0] = '\0';
	if (fd < 0)
		return -errno;
	while (len < size - 1) {
		ssize_t n = read(fd, text + len, size - 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int error = -errno;

			close(fd);
			return error;
		}
		if (n == 0)
			break;
		len += n;
	}
	close(fd);
	text[len] = '\0';
	return len;
}

/* The limit is never lowered: a host, unlike a guest, may have a higher one. */
static int raise_file(const char *path, long long wanted)
{
	char text[32];
	long long now;
	int error = read_file(path, text, sizeof(text));

	if (error < 0)
		return error;
	if (sscanf(text, "%lld", &now) == 1 && now >= wanted)
		return 0;
	return write_file(path, "%lld", wanted);
}

static int raise_rlimit(int which, rlim_t wanted)
{
	struct rlimit limit;

	if (getrlimit(which, &limit))
		return -errno;
	if (limit.rlim_cur >= wanted)
		return 0;
	limit.rlim_cur = wanted;
	if (limit.rlim_max < wanted)
		limit.rlim_max = wanted;
	return setrlimit(which, &limit) ? -errno : 0;
}

int stay_on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

int raise_limits(void)
{
	/* PID_MAX_LIMIT of 64-bit kernels; a task identifier has 30 bits (FUTEX_TID_MASK). */
	int error = raise_file("/proc/sys/kernel/pid_max", 4194304);

	if (!error)
		error = raise_file("/proc/sys/kernel/threads-max", 0x3fffffff);
	if (!error)
		error = raise_rlimit(RLIMIT_NPROC, RLIM_INFINITY);
	if (!error)
		error = raise_rlimit(RLIMIT_NOFILE, 1048576);
	return error;
}

void kill_and_reap_all(int pid)
{
	/*
	 * If a parent ignores SIGCHLD, the kernel releases each zombie that is reparented to it
	 * (reparent_leader), and wait() blocks until the last child is gone.
	 */
	signal(SIGCHLD, SIG_IGN);
	if (pid > 0)
		kill(pid, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
		;
	signal(SIGCHLD, SIG_DFL);
}

uint64_t prng_next(struct prng *p)
{
	uint64_t z = p->state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

uint64_t prng_below(struct prng *p, uint64_t bound)
{
	/* Without this, small results would be too frequent: 2^64 is not a multiple of bound. */
	uint64_t skip = -bound % bound, n;

	do
		n = prng_next(p);
	while (n < skip);
	return n % bound;
}
