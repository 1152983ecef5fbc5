// SPDX-License-Identifier: GPL-2.0
/*
 * Node 1 loses its memory after a cgroup had used it, and the cgroup is removed while a page of a
 * file is still charged to it. When the node has memory again and the page is freed, does
 * memory.numa_stat of the cgroup above still have what was freed meanwhile?
 *
 * The kernel needs tests/data/series/memcg-node-gone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"
#define UPPER ROOT "/upper"
#define CHILD UPPER "/child"
#define GONE "/sys/module/memcontrol/parameters/node_1_gone"
#define PAGE 4096L
#define MPOL_BIND 2
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

/* Anonymous pages of the cgroup above on node 1. */
static long pages(void)
{
	char line[300];
	long found = -1;
	FILE *file = fopen(UPPER "/memory.numa_stat", "r");

	if (!file)
		die("memory.numa_stat");
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, "anon ", 5) && strstr(line, "N1="))
			found = atol(strstr(line, "N1=") + 3) / PAGE;
	fclose(file);
	return found;
}

static void use_node(int file, long count, int ready, int end)
{
	unsigned long node_1 = 2;
	char byte, *memory;

	put(CHILD "/cgroup.procs", "0");
	if (write(file, "", 1) != 1 ||
	    syscall(SYS_set_mempolicy, MPOL_BIND, &node_1, 8 * sizeof(node_1)))
		_exit(EXIT_FAILURE);
	memory = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (memory == MAP_FAILED)
		_exit(EXIT_FAILURE);
	for (long i = 0; i < count; i++)
		memory[i * PAGE] = 1;
	if (write(ready, "", 1) != 1 || read(end, &byte, 1) != 0)
		_exit(EXIT_FAILURE);
	_exit(EXIT_SUCCESS);
}

int main(void)
{
	int file = memfd_create("file", 0), ready[2], end[2], status;
	char byte;
	pid_t child;

	put(ROOT "/cgroup.subtree_control", "+memory");
	if (mkdir(UPPER, 0755))
		die(UPPER);
	put(UPPER "/cgroup.subtree_control", "+memory");
	if (mkdir(CHILD, 0755) || pipe(ready) || pipe(end) || file < 0)
		die(CHILD);
	child = fork();
	if (!child) {
		close(end[1]);
		use_node(file, atol(getenv("PAGES")), ready[1], end[0]);
	}
	if (read(ready[0], &byte, 1) != 1)
		die("the child");
	sleep(SETTLE_S);
	printf("used %ld count\n", pages());
	put(GONE, "1");
	close(end[1]);
	if (waitpid(child, &status, 0) != child || status)
		die("the child");
	while (rmdir(CHILD))
		if (errno != EBUSY)
			die(CHILD);
	sleep(SETTLE_S);
	put(GONE, "0");
	if (ftruncate(file, 0))
		die("the file");
	sleep(SETTLE_S);
	printf("left %ld count\n", pages());
	return 0;
}
