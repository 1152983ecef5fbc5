// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"
#include "hunt/lib/uffd.h"

static char *memory;
static int fd;

static void prepare(void)
{
	memory = pages_reserve(2 * nr_objects * PAGE);
	fd = uffd_make();
}

static void add(int64_t i)
{
	uffd_register(fd, memory + 2 * i * PAGE, PAGE);
}

static void remove_one(int64_t i)
{
	struct uffdio_range range = {(uintptr_t)memory + 2 * i * PAGE, PAGE};

	MUST(ioctl(fd, UFFDIO_UNREGISTER, &range));
}

static void release(void)
{
	MUST(close(fd));
}

KIND(userfaultfd_ranges, "memory", "page of one mapping that one userfaultfd has registered",
     .shape = OF_ONE, .limit = "max_map_count", .needs = "CONFIG_USERFAULTFD", .exit = true,
     .call = "close()", .prepare = prepare, .add = add, .remove = remove_one, .release = release);
