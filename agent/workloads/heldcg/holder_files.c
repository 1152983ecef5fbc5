// SPDX-License-Identifier: GPL-2.0
/*
 * Files of tmpfs: a page, the same swapped out, the same locked by a process of another cgroup,
 * and an empty file.
 */
#define _GNU_SOURCE /* MADV_PAGEOUT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "holders.h"
#include "lib/cgroup.h"
#include "lib/meminfo.h"

/* A page that another task is using at the moment is not swapped out; a later pass takes it. */
#define PASSES 5
/* An inode of tmpfs and a dentry take 850 bytes or more. */
#define INODE 800
#define SLAB_SLACK 65536

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

/* The agent, which is in the root cgroup, locks the page that the process has written. */
static int lock_page(int64_t number, int64_t *kept)
{
	size_t page_size = sysconf(_SC_PAGESIZE);
	char path[HELD_PATH_SIZE];
	int error = 0, fd;
	void *page;

	held_path(path, HELD_FILES, number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	page = mmap(NULL, page_size, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		error = -errno;
	else
		*kept = (intptr_t)page;
	if (!error && mlock(page, page_size))
		error = -errno;
	close(fd);
	return error;
}

static int64_t count_locked(const int64_t *kept, int64_t count, bool outside)
{
	char text[4096];

	(void)kept;
	(void)count;
	(void)outside;
	if (read_file("/proc/meminfo", text, sizeof(text)) < 0)
		return -1;
	return meminfo_field(text, "Mlocked") * 1024 / sysconf(_SC_PAGESIZE);
}

static int unlock_page(int64_t number, int64_t kept)
{
	if (kept)
		munmap((void *)(intptr_t)kept, sysconf(_SC_PAGESIZE));
	return held_delete_file(number, kept);
}

static void make_empty(int64_t number, struct made *made)
{
	close(held_make_file(HELD_FILES, number, made));
}

static int64_t count_empty(const int64_t *kept, int64_t count, bool outside)
{
	(void)kept;
	(void)outside;
	return count_files(count, 0);
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

const struct holder holder_mlocked = {
	.name = "mlocked",
	.file_pages = 1,
	.charge = {"memory.stat", "unevictable", .pages = 1},
	.make = make_page,
	.keep = lock_page,
	.count = count_locked,
	.release = unlock_page,
};

/* An inode and a dentry, which are charged as slab objects; no page. */
const struct holder holder_inode = {
	.name = "inode",
	.charge = {"memory.stat", "slab", .bytes = INODE, .slack_bytes = SLAB_SLACK},
	.make = make_empty,
	.count = count_empty,
	.release = held_delete_file,
};
