// SPDX-License-Identifier: GPL-2.0
/* Files of tmpfs: a page, and the same swapped out. */
#define _GNU_SOURCE /* MADV_PAGEOUT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holders.h"

/* A page that another task is using at the moment is not swapped out; a later pass takes it. */
#define PASSES 5

/* How many files there are of this many bytes. */
static int64_t count_files(int64_t count, int64_t bytes)
{
	char path[HELD_PATH_SIZE];
	struct stat info;
	int64_t found = 0;

	for (int64_t i = 0; i < count; i++) {
		held_path(path, HELD_FILES, i);
		found += !stat(path, &info) && info.st_size == bytes;
	}
	return found;
}

static int64_t count_pages(const int64_t *kept, int64_t count, bool outside)
{
	(void)kept;
	(void)outside;
	return count_files(count, sysconf(_SC_PAGESIZE));
}

static void make_page(int64_t number, struct made *made)
{
	int fd = held_make_file(HELD_FILES, number, made);

	made_check(made, "writing a file", held_write_page(fd, number));
	close(fd);
}

/* Swaps the page out that the file consists of. */
static int swap_out(int fd)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	volatile char *page = mmap(NULL, page_size, PROT_READ, MAP_SHARED, fd, 0);
	unsigned char resident = 1;
	int error = 0;

	if (page == MAP_FAILED)
		return -errno;
	for (int i = 0; i < PASSES && (resident & 1) && !error; i++) {
		(void)page[0]; /* only a mapped page can be swapped out */
		if (madvise((void *)page, page_size, MADV_PAGEOUT) ||
		    mincore((void *)page, page_size, &resident))
			error = -errno;
	}
	munmap((void *)page, page_size);
	return error ? error : resident & 1 ? -EBUSY : 0;
}

static void make_swapped(int64_t number, struct made *made)
{
	int fd = held_make_file(HELD_FILES, number, made);

	made_check(made, "writing a file", held_write_page(fd, number));
	made_check(made, "swapping a file out", swap_out(fd));
	close(fd);
}

const struct holder holder_file = {
	.name = "file",
	.file_pages = 1,
	.charge = {"memory.stat", "file", .pages = 1},
	.make = make_page,
	.count = count_pages,
	.release = held_delete_file,
};

const struct holder holder_swapped = {
	.name = "swapped",
	.swapped_pages = 1,
	.charge = {"memory.swap.current", NULL, .pages = 1},
	.make = make_swapped,
	.count = count_pages,
	.release = held_delete_file,
};

/* A removed cgroup in the cgroup, which has a page as above. */
const struct holder holder_child = {
	.name = "child",
	.only_inside = true,
	.nested = true,
	.swapped_pages = 1,
	.charge = {"memory.swap.current", NULL, .pages = 1},
	.make = make_swapped,
	.count = count_pages,
	.release = held_delete_file,
};
