// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/pages.h"

static int fd;

static void prepare(void)
{
	fd = make_file("file");
	MUST(unlink("file"));
}

static void add(int64_t i)
{
	MUST(pwrite(fd, "x", 1, i * PAGE));
}

static void remove_one(int64_t i)
{
	MUST(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, i * PAGE, PAGE));
}

static void release(void)
{
	MUST(ftruncate(fd, 0));
}

KIND(pages_tmpfs, "memory", "page of one file of a tmpfs", .shape = OF_ONE, .limit = "memory",
     .exit = true, .call = "ftruncate()", .prepare = prepare, .add = add, .remove = remove_one,
     .release = release);
