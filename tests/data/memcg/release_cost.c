// SPDX-License-Identifier: GPL-2.0
/*
 * What the kernel does later for memory cgroups that were removed while a page is charged to each:
 * the CPU time of all kernel threads, from before the first cgroup is made until no work is left.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PARENT "/sys/fs/cgroup/parent"
/* Longer than the kernel's periodic flush of statistics, which both kernels do. */
#define SETTLE_S 5

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

/* A kernel thread has no memory, so its command line is empty. */
static int is_kernel_thread(const char *pid)
{
	char path[300], byte;
	int fd, empty;

	snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return 0;
	empty = read(fd, &byte, 1) == 0;
	close(fd);
	return empty;
}

static long long kernel_threads_ns(void)
{
	struct dirent *entry;
	struct timespec used;
	long long sum = 0;
	clockid_t clock;
	DIR *proc = opendir("/proc");

	if (!proc)
		die("/proc");
	while ((entry = readdir(proc)))
		if (atoi(entry->d_name) > 0 && is_kernel_thread(entry->d_name) &&
		    !clock_getcpuclockid(atoi(entry->d_name), &clock) &&
		    !clock_gettime(clock, &used))
			sum += used.tv_sec * 1000000000LL + used.tv_nsec;
	closedir(proc);
	return sum;
}

static void make_and_remove(int number)
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
	while (rmdir(path))
		if (errno != EBUSY)
			die(path);
}

int main(void)
{
	int cgroups = atoi(getenv("CGROUPS"));
	long long before;

	if (mkdir(PARENT, 0755))
		die(PARENT);
	put(PARENT "/cgroup.subtree_control", "+memory");
	sleep(SETTLE_S);
	before = kernel_threads_ns();
	for (int i = 0; i < cgroups; i++)
		make_and_remove(i);
	sleep(SETTLE_S);
	printf("kernel_threads %lld ns\n", kernel_threads_ns() - before);
	return 0;
}
