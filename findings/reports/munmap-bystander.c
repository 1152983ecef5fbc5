// SPDX-License-Identifier: GPL-2.0
/*
 * One thread unmaps a file mapping of N MB while another one, which runs every millisecond, maps
 * and unmaps one page of the same process: how long has the second to wait for the first?
 * Needs no module; best with two CPUs. Memory: N MB and 100 MB.
 * N: MB (default 64). CHUNK_MB: unmap in steps of so many MB; 0: all at once (default).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static atomic_int stop, ready;
static long long longest, calls;

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

static void *bystander(void *unused)
{
	struct sched_param param = {.sched_priority = 10};
	struct timespec ms = {0, 1000000};

	(void)unused;
	/* Without it, a guest with one CPU may let the thread run only when all is over. */
	errno = pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
	if (errno)
		die("SCHED_FIFO");
	while (!atomic_load(&stop)) {
		long long begin = now_ns(), took;
		void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);

		if (page == MAP_FAILED || munmap(page, 4096))
			die("mmap of the second thread");
		took = now_ns() - begin;
		if (atomic_load(&ready)) {
			calls++;
			if (took > longest)
				longest = took;
		}
		nanosleep(&ms, NULL);
	}
	return NULL;
}

int main(void)
{
	size_t size = atol(getenv("N") ?: "64") << 20, done, step;
	size_t chunk = atol(getenv("CHUNK_MB") ?: "0") << 20;
	struct timespec pause = {0, 20000000};
	long long begin, took;
	pthread_t thread;
	char *map;
	int fd;

	if (!size)
		return 1;
	if (!chunk || chunk > size)
		chunk = size;
	fd = memfd_create("kt", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, size))
		die("memfd");
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		die("mmap");
	/* Pages of 4 KB, as of a file in the page cache. */
	madvise(map, size, MADV_NOHUGEPAGE);
	for (done = 0; done < size; done += 4096)
		map[done] = 1;
	if ((errno = pthread_create(&thread, NULL, bystander, NULL)))
		die("pthread_create");
	nanosleep(&pause, NULL);

	atomic_store(&ready, 1);
	begin = now_ns();
	for (done = 0; done < size; done += step) {
		step = size - done < chunk ? size - done : chunk;
		if (munmap(map + done, step))
			die("munmap");
	}
	took = now_ns() - begin;
	nanosleep(&pause, NULL);
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);

	if (!calls) {
		fprintf(stderr, "the second thread did not run\n");
		return 1;
	}
	printf("munmap_ns %lld ns\n", took);
	printf("mmap_wait_ns %lld ns\n", longest);
	return 0;
}
