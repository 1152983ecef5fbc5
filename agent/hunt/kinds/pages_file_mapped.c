// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/pages.h"

static char *memory;

static void prepare(void)
{
	int fd = make_file("file");

	MUST(ftruncate(fd, nr_objects * PAGE));
	if (nr_objects)
		memory = pages_map(nr_objects * PAGE, PROT_READ, MAP_SHARED, fd);
	close(fd);
}

static void add(int64_t i)
{
	*(volatile char *)(memory + i * PAGE);
}

static void release(void)
{
	MUST(munmap(memory, nr_objects * PAGE));
}

KIND(pages_file_mapped, "memory", "clean page of one file, mapped and read", .shape = ON_ONE,
     .limit = "memory", .exit = true, .call = "munmap()", .prepare = prepare, .add = add,
     .release = release);
