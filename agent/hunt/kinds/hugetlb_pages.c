// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

static char *memory;

/* Pages beyond the pool, which go back to the system: a pool would stay after the owner. */
static void prepare(void)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)nr_objects);
	MUST(put_file("/proc/sys/vm/nr_overcommit_hugepages", text) ? -1 : 0);
	memory = pages_map(nr_objects * HUGE_PAGE, READ_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
}

static void add(int64_t i)
{
	memory[i * HUGE_PAGE] = 1;
}

static void remove_one(int64_t i)
{
	MUST(munmap(memory + i * HUGE_PAGE, HUGE_PAGE));
}

static void release(void)
{
	MUST(munmap(memory, nr_objects * HUGE_PAGE));
}

KIND(hugetlb_pages, "memory", "hugetlb page of one mapping", .shape = OF_ONE, .limit = "memory",
     .needs = "CONFIG_HUGETLBFS", .privileged = true, .most = 500, .exit = true, .call = "munmap()",
     .prepare = prepare, .add = add, .remove = remove_one, .release = release);
