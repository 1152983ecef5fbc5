// SPDX-License-Identifier: GPL-2.0
/*
 * How long does a reader of statistics wait while removed memory cgroups are released? All cgroups
 * are made first, each with a page of a file that stays charged to it. Then they are removed one
 * after another, and a process on another CPU reads the statistics of a cgroup that is not above
 * them, from the first removal until the release is over.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"
#define PARENT ROOT "/parent"
#define OTHER ROOT "/other"
#define MOST_READS 1000000
#define SETTLE_S 5
/* Longer than the grace periods and the release of 1,000 cgroups with 64 possible CPUs. */
#define RELEASE_S 1

enum { WAITING, READING, DONE };

struct readings {
	int state;
	int reads;
	long long ns[MOST_READS];
};

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static void make(int number)
{
	char path[100], file[100];
	int status;
	pid_t child;

	snprintf(path, sizeof(path), PARENT "/%d", number);
	snprintf(file, sizeof(file), "/dev/shm/%d", number);
	if (mkdir(path, 0755))
		die(path);
	child = fork();
	if (!child) {
		strcat(path, "/cgroup.procs");
		put(path, "0");
		put(file, "a page");
		_exit(EXIT_SUCCESS);
	}
	if (waitpid(child, &status, 0) != child || status)
		die("the child");
}

static void drop(int number)
{
	char path[100];

	snprintf(path, sizeof(path), PARENT "/%d", number);
	while (rmdir(path))
		if (errno != EBUSY)
			die(path);
}

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void read_statistics(struct readings *found)
{
	static char text[16384];
	const char *path =
		strcmp(getenv("READ"), "memory") ? OTHER "/cpu.stat" : ROOT "/memory.stat";
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		die(path);
	run_on(1);
	while (__atomic_load_n(&found->state, __ATOMIC_ACQUIRE) == WAITING)
		usleep(1000);
	while (__atomic_load_n(&found->state, __ATOMIC_ACQUIRE) == READING) {
		long long start = now_ns();

		if (pread(fd, text, sizeof(text), 0) <= 0)
			die(path);
		if (found->reads < MOST_READS)
			found->ns[found->reads++] = now_ns() - start;
	}
	_exit(EXIT_SUCCESS);
}

static int by_length(const void *left, const void *right)
{
	long long a = *(const long long *)left, b = *(const long long *)right;

	return (a > b) - (a < b);
}

int main(void)
{
	struct readings *found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int cgroups = atoi(getenv("CGROUPS")), status;
	long long sum = 0, start, removed;
	pid_t reader;

	if (found == MAP_FAILED || mkdir(PARENT, 0755) || mkdir(OTHER, 0755))
		die(PARENT);
	put(ROOT "/cgroup.subtree_control", "+memory");
	put(PARENT "/cgroup.subtree_control", "+memory");
	reader = fork();
	if (!reader)
		read_statistics(found);
	run_on(0);
	for (int i = 0; i < cgroups; i++)
		make(i);
	sleep(SETTLE_S);
	start = now_ns();
	__atomic_store_n(&found->state, READING, __ATOMIC_RELEASE);
	for (int i = 0; i < cgroups; i++)
		drop(i);
	removed = now_ns();
	sleep(RELEASE_S);
	__atomic_store_n(&found->state, DONE, __ATOMIC_RELEASE);
	if (waitpid(reader, &status, 0) != reader || status || !found->reads)
		die("the reader");
	qsort(found->ns, found->reads, sizeof(found->ns[0]), by_length);
	for (int i = 0; i < found->reads; i++)
		sum += found->ns[i];
	printf("removal %lld ns\n", removed - start);
	printf("reads %d count\n", found->reads);
	printf("mean %lld ns\n", sum / found->reads);
	printf("p99 %lld ns\n", found->ns[found->reads * 99LL / 100]);
	printf("longest %lld ns\n", found->ns[found->reads - 1]);
	return 0;
}
