// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* MADV_PAGEOUT */
#include "memcg_swap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* A page that another task is using at the moment is not swapped out; a later pass takes it. */
#define PASSES 20

/*
 * A page that was just read from swap waits in a batch of the CPU that read it, and is not
 * swapped out while it is there. MADV_PAGEOUT empties the batches of its own CPU alone;
 * before page cache is dropped, those of all CPUs are emptied. Files of tmpfs stay.
 */
static int empty_batches(void)
{
	return write_file("/proc/sys/vm/drop_caches", "1");
}

int swap_out_pages(int fd, int64_t from, int64_t pages)
{
	volatile char *at = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, fd, from * PAGE);
	unsigned char in_memory[PAGES];
	int64_t left = pages;
	int error = 0;

	if (at == MAP_FAILED)
		return -errno;
	for (int pass = 0; pass < PASSES && left && !error; pass++) {
		left = 0;
		for (int64_t i = 0; i < pages; i++)
			(void)at[i * PAGE]; /* only a mapped page can be swapped out */
		if (pass)
			error = empty_batches();
		if (error)
			break;
		if (madvise((void *)at, pages * PAGE, MADV_PAGEOUT) ||
		    mincore((void *)at, pages * PAGE, in_memory))
			error = -errno;
		for (int64_t i = 0; i < pages && !error; i++)
			left += in_memory[i] & 1;
	}
	munmap((void *)at, pages * PAGE);
	return error ? error : left ? -EBUSY : 0;
}

int write_pages(int fd, int64_t pages)
{
	static char data[PAGES * PAGE];

	for (size_t i = 0; i < sizeof(data); i += sizeof(uint64_t))
		data[i] = (char)(i / sizeof(uint64_t) + 1);
	return write_all(fd, data, pages * PAGE);
}

int swap_out_file(const char *path, int64_t pages)
{
	int fd = open(path, O_RDWR | O_CLOEXEC), error = fd < 0 ? -errno : 0;

	if (!error)
		error = swap_out_pages(fd, 0, pages);
	if (fd >= 0)
		close(fd);
	return error;
}

int make_swapped_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int error = fd < 0 ? -errno : write_pages(fd, PAGES);

	if (fd >= 0)
		close(fd);
	return error ? error : swap_out_file(path, PAGES);
}

int64_t file_pages_in_memory(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned char is_there[PAGES];
	int64_t count = 0;
	void *at;

	if (fd < 0)
		return -errno;
	at = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return -errno;
	if (mincore(at, PAGES * PAGE, is_there))
		count = -errno;
	for (int64_t i = 0; i < PAGES && count >= 0; i++)
		count += is_there[i] & 1;
	munmap(at, PAGES * PAGE);
	return count;
}

int read_half_of_file(const char *path)
{
	static char data[PAGES / 2 * PAGE];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int error = fd < 0 ? -errno : read_all(fd, data, sizeof(data));

	if (fd >= 0)
		close(fd);
	return error;
}
