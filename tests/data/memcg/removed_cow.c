// SPDX-License-Identifier: GPL-2.0
/*
 * A process of a cgroup forks two children, which move to another cgroup and share its anonymous
 * memory copy-on-write. The memory is swapped out, the process exits, and its cgroup is removed.
 * Who is charged when one child reads the memory, and when it writes to it, while the other child
 * has it and when that has exited?
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"
#define UPPER ROOT "/upper"
#define CHILD UPPER "/child"
#define OTHER ROOT "/other"
#define SWAP "/dev/zram0"
#define SWAP_BYTES (256L << 20)
#define PAGE 4096L
/* Longer than the kernel's periodic flush of statistics. */
#define SETTLE_S 3

static volatile char *memory;
static long pages;

static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

static int try_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), bad;

	if (fd < 0)
		die(path);
	bad = write(fd, text, strlen(text)) < 0;
	close(fd);
	return bad;
}

static void put(const char *path, const char *text)
{
	if (try_put(path, text))
		die(path);
}

/* Anonymous pages of a cgroup, and what is below it. */
static long anonymous(const char *cgroup)
{
	char path[100], line[200];
	long bytes = -1;
	FILE *file;

	snprintf(path, sizeof(path), "%s/memory.stat", cgroup);
	file = fopen(path, "r");
	if (!file)
		die(path);
	while (fgets(line, sizeof(line), file) && bytes < 0)
		if (sscanf(line, "anon %ld", &bytes) != 1)
			bytes = -1;
	fclose(file);
	return bytes / PAGE;
}

static void make_swap(void)
{
	static char page[PAGE];
	uint32_t info[] = {1, SWAP_BYTES / PAGE - 1}; /* version, last page */
	char bytes[32];
	int fd;

	snprintf(bytes, sizeof(bytes), "%ld", SWAP_BYTES);
	put("/sys/block/zram0/disksize", bytes);
	put("/proc/sys/vm/page-cluster", "0");
	memcpy(page + 1024, info, sizeof(info));
	memcpy(page + PAGE - 10, "SWAPSPACE2", 10);
	fd = open(SWAP, O_WRONLY);
	if (fd < 0 || write(fd, page, PAGE) != PAGE || fsync(fd) || close(fd) || swapon(SWAP, 0))
		die(SWAP);
}

/* One byte in asks for one step; one byte out says that it is done. */
static void serve(int in, int out)
{
	char step;

	put(OTHER "/cgroup.procs", "0");
	if (write(out, "", 1) != 1)
		_exit(EXIT_FAILURE);
	while (read(in, &step, 1) == 1) {
		for (long i = 0; i < pages; i++) {
			if (step == 'r')
				(void)memory[i * PAGE];
			else if ((step == 'w') == (i < pages / 2))
				memory[i * PAGE] = step;
		}
		if (write(out, "", 1) != 1)
			_exit(EXIT_FAILURE);
	}
	_exit(EXIT_SUCCESS);
}

static void wait_for(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		die("a child");
}

static void step(int to, int from, char which, const char *name)
{
	if (write(to, &which, 1) != 1)
		die("a child");
	wait_for(from);
	sleep(SETTLE_S);
	printf("upper_%s %ld count\n", name, anonymous(UPPER));
	printf("other_%s %ld count\n", name, anonymous(OTHER));
}

int main(void)
{
	int to[2][2], from[2], made[2], status;
	pid_t parent;

	pages = atol(getenv("PAGES"));
	make_swap();
	put(ROOT "/cgroup.subtree_control", "+memory");
	if (mkdir(UPPER, 0755) || mkdir(OTHER, 0755))
		die(UPPER);
	put(UPPER "/cgroup.subtree_control", "+memory");
	if (mkdir(CHILD, 0755) || pipe(to[0]) || pipe(to[1]) || pipe(from) || pipe(made))
		die(CHILD);
	parent = fork();
	if (!parent) {
		put(CHILD "/cgroup.procs", "0");
		memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (memory == MAP_FAILED)
			_exit(EXIT_FAILURE);
		memset((void *)memory, 'k', pages * PAGE);
		for (int i = 0; i < 2; i++)
			if (!fork()) {
				close(to[0][1]);
				close(to[1][1]);
				serve(to[i][0], from[1]);
			}
		if (write(made[1], "", 1) != 1)
			_exit(EXIT_FAILURE);
		pause();
	}
	wait_for(made[0]);
	wait_for(from[0]);
	wait_for(from[0]);
	for (int i = 0; i < 20 && anonymous(CHILD) > pages / 100; i++) {
		if (try_put(CHILD "/memory.reclaim", "1G"))
			sleep(1);
	}
	kill(parent, SIGKILL);
	if (waitpid(parent, &status, 0) != parent)
		die("waitpid");
	sleep(SETTLE_S);
	while (rmdir(CHILD))
		if (errno != EBUSY)
			die(CHILD);
	sleep(SETTLE_S);
	printf("upper_before %ld count\n", anonymous(UPPER));
	step(to[0][1], from[0], 'r', "read");
	step(to[0][1], from[0], 'w', "shared");
	close(to[1][1]); /* the second child exits */
	sleep(1);
	step(to[0][1], from[0], 'v', "alone");
	return 0;
}
