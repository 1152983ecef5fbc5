// SPDX-License-Identifier: GPL-2.0
/*
 * A cgroup is removed while PAGES of its file are swapped out. Then a process of another cgroup
 * reads them, and the swap is turned off: who is charged, and what happens at the limit of the
 * cgroup above the removed one?
 *
 * LIMIT is what that cgroup has (half of PAGES is its memory.max, except in "none"):
 *   none    no limit; what is measured is the time of reading
 *   living  no limit, and the cgroup is removed after it was read
 *   room    it can swap its memory out
 *   task    it cannot, and a task of it has memory that the OOM killer can free
 *   full    it cannot, and there is no task
 *   fault   the same, and the file is mapped instead of read
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
#include <time.h>
#include <unistd.h>

#define ROOT "/sys/fs/cgroup"
#define UPPER ROOT "/upper"
#define CHILD UPPER "/child"
#define WORKER UPPER "/worker"
#define OTHER ROOT "/other"
#define SWAP "/dev/zram0"
#define SWAP_BYTES (256L << 20)
#define PAGE 4096L
/* Longer than the release of a removed cgroup, and than the kernel's periodic flush. */
#define SETTLE_S 3
#define STUCK_S 1

/* What the reader reports. */
static struct report {
	long read, errors, last_errno, ns;
} * report;

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

static void put_number(const char *path, long number)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", number);
	put(path, text);
}

/* The number in a file, or behind a name in it. */
static long value(const char *path, const char *name)
{
	char line[200], key[100];
	long found = -1;
	FILE *file = fopen(path, "r");

	if (!file)
		die(path);
	while (fgets(line, sizeof(line), file) && found < 0)
		if (!name)
			found = atol(line);
		else if (sscanf(line, "%99s %ld", key, &found) != 2 || strcmp(key, name))
			found = -1;
	fclose(file);
	return found;
}

static void make_swap(void)
{
	static char page[PAGE];
	uint32_t info[] = {1, SWAP_BYTES / PAGE - 1}; /* version, last page */
	int fd;

	put_number("/sys/block/zram0/disksize", SWAP_BYTES);
	put("/proc/sys/vm/page-cluster", "0");
	memcpy(page + 1024, info, sizeof(info));
	memcpy(page + PAGE - 10, "SWAPSPACE2", 10);
	fd = open(SWAP, O_WRONLY);
	if (fd < 0 || write(fd, page, PAGE) != PAGE || fsync(fd))
		die(SWAP);
	close(fd);
	if (swapon(SWAP, 0))
		die("swapon");
}

static int in_cgroup(const char *cgroup, void (*act)(int, long), int fd, long pages)
{
	char procs[100];
	int status;
	pid_t child = fork();

	if (!child) {
		snprintf(procs, sizeof(procs), "%s/cgroup.procs", cgroup);
		put(procs, "0");
		act(fd, pages);
		_exit(EXIT_SUCCESS);
	}
	if (waitpid(child, &status, 0) != child)
		die("waitpid");
	return status;
}

/* zram stores a page that is filled with one word without compressing it. */
static void fill(int fd, long pages)
{
	static char page[PAGE];

	memset(page, 'k', sizeof(page));
	for (long i = 0; i < pages; i++)
		if (write(fd, page, PAGE) != PAGE)
			_exit(EXIT_FAILURE);
}

static long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void read_all(int fd, long pages)
{
	static char page[PAGE];
	long start = now_ns();

	for (long i = 0; i < pages; i++)
		if (pread(fd, page, PAGE, i * PAGE) == PAGE) {
			report->read++;
		} else {
			report->errors++;
			report->last_errno = errno;
		}
	report->ns = now_ns() - start;
}

/* A task that cannot get its page tries for ever; the alarm ends it. */
static void touch_all(int fd, long pages)
{
	volatile char *at = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		_exit(EXIT_FAILURE);
	alarm(STUCK_S);
	for (long i = 0; i < pages; i++) {
		(void)at[i * PAGE];
		report->read++;
	}
}

static pid_t start_worker(long pages)
{
	int ready[2];
	char byte;
	pid_t child;

	if (pipe(ready))
		die("pipe");
	child = fork();
	if (!child) {
		char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		put(WORKER "/cgroup.procs", "0");
		if (at == MAP_FAILED)
			_exit(EXIT_FAILURE);
		for (long i = 0; i < pages; i++)
			at[i * PAGE] = 1;
		if (write(ready[1], "", 1) != 1)
			_exit(EXIT_FAILURE);
		pause();
	}
	if (read(ready[0], &byte, 1) != 1)
		die("the worker");
	return child;
}

/* What does not fit into the reader's own cgroup stays there as stocks of some CPU. */
static void print_charges(const char *when)
{
	sleep(SETTLE_S);
	printf("upper_%s %ld count\n", when, value(UPPER "/memory.stat", "shmem") / PAGE);
	printf("other_%s %ld count\n", when, value(OTHER "/memory.stat", "shmem") / PAGE);
	printf("oom_%s %ld count\n", when, value(UPPER "/memory.events", "oom"));
	printf("oom_kill_%s %ld count\n", when, value(UPPER "/memory.events", "oom_kill"));
}

int main(void)
{
	long pages = atol(getenv("PAGES"));
	const char *limit = getenv("LIMIT");
	int unlimited = !strcmp(limit, "none") || !strcmp(limit, "living"), fd, status;
	pid_t worker = 0;

	report = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fd = memfd_create("file", 0);
	if (report == MAP_FAILED || fd < 0)
		die("memory");
	make_swap();
	put(ROOT "/cgroup.subtree_control", "+memory");
	if (mkdir(UPPER, 0755) || mkdir(OTHER, 0755))
		die(UPPER);
	put(UPPER "/cgroup.subtree_control", "+memory");
	if (mkdir(CHILD, 0755) || mkdir(WORKER, 0755))
		die(CHILD);
	if (in_cgroup(CHILD, fill, fd, pages))
		die("the writer");
	/* A page that still waits in the batch of a CPU is not swapped out. */
	put("/proc/sys/vm/compact_memory", "1");
	for (int i = 0; i < 20 && value(CHILD "/memory.stat", "shmem"); i++) {
		if (try_put(CHILD "/memory.reclaim", "1G"))
			sleep(1);
	}
	printf("swapped %ld count\n", value(UPPER "/memory.swap.current", NULL) / PAGE);
	if (strcmp(limit, "living") && rmdir(CHILD))
		die(CHILD);
	sleep(SETTLE_S);
	printf("dying %ld count\n", value(UPPER "/cgroup.stat", "nr_dying_descendants"));

	if (!strcmp(limit, "task"))
		worker = start_worker(pages / 4);
	if (!unlimited && strcmp(limit, "room"))
		put(UPPER "/memory.swap.max", "0");
	if (!unlimited)
		put_number(UPPER "/memory.max", pages / 2 * PAGE);

	status = in_cgroup(OTHER, strcmp(limit, "fault") ? read_all : touch_all, fd, pages);
	printf("read %ld count\n", report->read);
	printf("errors %ld count\n", report->errors);
	printf("errno %ld count\n", report->last_errno);
	printf("killed_by %d count\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	printf("reading %ld ns\n", report->ns);
	print_charges("read");
	status = swapoff(SWAP) ? errno : 0;
	printf("swapoff_errno %d count\n", status);
	print_charges("off");
	if (worker) {
		kill(worker, SIGKILL);
		waitpid(worker, NULL, 0);
	}
	return 0;
}
