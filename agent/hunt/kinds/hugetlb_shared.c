// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

#define RANGE (1L << 30)

static char *memory;

/* What is aligned to 1 GB and shared by two processes has one page table for both. */
static void prepare(void)
{
	char text[24];
	uintptr_t at;

	snprintf(text, sizeof(text), "%lld", (long long)nr_objects);
	MUST(put_file("/proc/sys/vm/nr_overcommit_hugepages", text) ? -1 : 0);
	at = (uintptr_t)pages_reserve((nr_objects + 1) * RANGE);
	at = (at + RANGE - 1) & -RANGE;
	if (!nr_objects)
		return;
	memory = mmap((void *)at, nr_objects * RANGE, READ_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE | MAP_FIXED, -1, 0);
	MUST((long)memory);
}

static void add(int64_t i)
{
	memory[i * RANGE] = 1;
}

/* The other process has touched all pages, too. */
static void make(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++)
		add(i);
	ready_make();
	if (child(0, true))
		return ready_wait();
	for (i = 0; i < nr_objects; i++)
		add(i);
	ready_say();
	wait_to_be_killed();
}

static void release(void)
{
	MUST(munmap(memory, nr_objects * RANGE));
}

KIND(hugetlb_shared, "memory", "1 GB of a shared hugetlb mapping with one page table for two",
     .shape = OF_ONE, .limit = "memory", .needs = "CONFIG_HUGETLBFS", .privileged = true,
     .most = 500, .exit = true, .call = "munmap()", .prepare = prepare, .make = make,
     .release = release);
