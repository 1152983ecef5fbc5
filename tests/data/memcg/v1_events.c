// SPDX-License-Identifier: GPL-2.0
/*
 * Version 1: a process faults pages in a child cgroup and exits, then the child is removed. By how
 * much does the parent's own pgfault (memory.stat, without total_) grow with the removal?
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT "/memory"
#define PARENT ROOT "/parent"
#define CHILD PARENT "/child"
#define PAGE 4096L
/* Longer than the release of a removed cgroup, and than the kernel's periodic flush. */
#define SETTLE_S 5

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(path);
	close(fd);
}

static long value(const char *name)
{
	char line[200], key[100];
	long found;
	FILE *file = fopen(PARENT "/memory.stat", "r");

	if (!file)
		die("memory.stat");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%99s %ld", key, &found) == 2 && !strcmp(key, name)) {
			fclose(file);
			return found;
		}
	errno = ENOENT;
	die(name);
	return 0;
}

int main(void)
{
	long pages = atol(getenv("PAGES")), own, total;
	int status;
	pid_t child;

	put("/sys/fs/cgroup/cgroup.subtree_control", "-memory");
	if (mkdir(ROOT, 0755))
		die(ROOT);
	/* The controller leaves version 2 when its last group there is freed. */
	while (mount("cgroup", ROOT, "cgroup", 0, "memory")) {
		if (errno != EBUSY)
			die("mount");
		usleep(10000);
	}
	if (mkdir(PARENT, 0755) || mkdir(CHILD, 0755))
		die(CHILD);
	child = fork();
	if (!child) {
		char *memory;

		put(CHILD "/cgroup.procs", "0");
		memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			_exit(EXIT_FAILURE);
		for (long i = 0; i < pages; i++)
			memory[i * PAGE] = 1;
		_exit(EXIT_SUCCESS);
	}
	if (waitpid(child, &status, 0) != child || status)
		die("the child");
	sleep(SETTLE_S);
	own = value("pgfault");
	total = value("total_pgfault");
	if (rmdir(CHILD))
		die(CHILD);
	sleep(SETTLE_S);
	printf("own_before %ld count\n", own);
	printf("own_after %ld count\n", value("pgfault"));
	printf("total_before %ld count\n", total);
	printf("total_after %ld count\n", value("total_pgfault"));
	return 0;
}
