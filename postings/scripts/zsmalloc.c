// SPDX-License-Identifier: GPL-2.0
/*
 * The method of the thread of 20260421121616.3298845-1-haowenchao@xiaomi.com
 * (../zsmalloc.toml), in our own words: each of PROCESSES maps SIZE_MB, writes data, and pages
 * them out to swap on zram; then all unmap at the same time. Prints "munmap NUMBER ns" for each.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define DEVICE "/dev/zram0"
#define SYSFS "/sys/block/zram0/"

static int ready[2], go[2], results[2]; /* pipes; closing "go" starts all at the same time */

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static long parameter(const char *name, long otherwise)
{
	const char *text = getenv(name);
	long value = text ? atol(text) : otherwise;

	if (value < 1) {
		fprintf(stderr, "%s must be at least 1\n", name);
		exit(2);
	}
	return value;
}

static void put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(file);
	close(fd);
}

/* Swap on zram, with lzo-rle as posted; the header is what mkswap(8) writes. */
static void swap_on(long bytes)
{
	static uint32_t header[PAGE / sizeof(uint32_t)];
	char size[32];
	int fd;

	put(SYSFS "comp_algorithm", "lzo-rle");
	snprintf(size, sizeof(size), "%ld", bytes);
	put(SYSFS "disksize", size);
	header[256] = 1; /* version */
	header[257] = bytes / PAGE - 1; /* last page */
	memcpy((char *)header + PAGE - 10, "SWAPSPACE2", 10);
	fd = open(DEVICE, O_WRONLY);
	if (fd < 0 || write(fd, header, PAGE) != PAGE || close(fd) || swapon(DEVICE, 0))
		die(DEVICE);
}

/*
 * As the posting does not say what was written: a sixteenth to a half of a page is random, so
 * pages compress to objects of several sizes, and no page consists of one word.
 */
static void fill(char *memory, long bytes)
{
	uint64_t random = getpid();

	for (long page = 0; page < bytes / PAGE; page++) {
		char *to = memory + page * PAGE;
		long end = PAGE / 16 * (1 + page % 8);

		for (long at = 0; at < end; at += sizeof(random)) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			memcpy(to + at, &random, sizeof(random));
		}
		memset(to + end, 'a' + page % 16, PAGE - end);
	}
}

/* Of this process, in kB. */
static long swapped_kb(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	long kb = 0;

	while (status && fgets(line, sizeof(line), status))
		sscanf(line, "VmSwap: %ld", &kb);
	if (status)
		fclose(status);
	return kb;
}

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void member(long bytes)
{
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long long ns;
	char byte = 1;

	if (memory == MAP_FAILED)
		die("mmap");
	fill(memory, bytes);
	if (madvise(memory, bytes, MADV_PAGEOUT))
		die("MADV_PAGEOUT");
	if (swapped_kb() < bytes / 1024 * 9 / 10) {
		fprintf(stderr, "%ld of %ld kB are swapped out\n", swapped_kb(), bytes / 1024);
		exit(1);
	}
	close(go[1]);
	if (write(ready[1], &byte, 1) != 1 || close(ready[1]) || read(go[0], &byte, 1) != 0)
		die("pipe");
	ns = now_ns();
	munmap(memory, bytes);
	ns = now_ns() - ns;
	if (write(results[1], &ns, sizeof(ns)) != sizeof(ns))
		die("pipe");
	exit(0);
}

int main(void)
{
	long processes = parameter("PROCESSES", 1), bytes = parameter("SIZE_MB", 256) << 20;
	int failed = 0, status;
	long long ns;
	char byte;

	/* A quarter more, as each CPU takes swap slots in clusters of its own. */
	swap_on(processes * bytes / 4 * 5 + (16 << 20));
	if (pipe(ready) || pipe(go) || pipe(results))
		die("pipe");
	for (long i = 0; i < processes; i++) {
		pid_t child = fork();

		if (child < 0)
			die("fork");
		if (child == 0)
			member(bytes);
	}
	/* Once these ends are closed, a process that died does not leave this one waiting. */
	close(ready[1]);
	close(results[1]);
	for (long i = 0; i < processes; i++)
		if (read(ready[0], &byte, 1) != 1)
			break;
	close(go[1]);
	while (read(results[0], &ns, sizeof(ns)) == sizeof(ns))
		printf("munmap %lld ns\n", ns);
	while (wait(&status) > 0)
		failed |= status;
	swapoff(DEVICE);
	put(SYSFS "reset", "1");
	return failed ? 1 : 0;
}
