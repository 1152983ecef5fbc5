// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/pages.h"

static char *memory;

static long merged(void)
{
	char text[32] = "";
	int fd = MUST(open("/sys/kernel/mm/ksm/pages_sharing", O_RDONLY | O_CLOEXEC));

	MUST(read(fd, text, sizeof(text) - 1));
	close(fd);
	return atol(text);
}

/* All pages are the same; ksmd merges them until nearly all are. */
static void make(void)
{
	int patience = 500;

	MUST(put_file("/sys/kernel/mm/ksm/run", "1") ? -1 : 0);
	put_file("/sys/kernel/mm/ksm/sleep_millisecs", "1");
	memory = pages_reserve(nr_objects * PAGE);
	MUST(madvise(memory, nr_objects * PAGE, MADV_MERGEABLE));
	memset(memory, 1, nr_objects * PAGE);
	while (merged() < nr_objects * 9 / 10 && patience--)
		usleep(10000);
	put_file("/sys/kernel/mm/ksm/run", "0");
}

static void release(void)
{
	MUST(munmap(memory, nr_objects * PAGE));
}

KIND(pages_merged, "memory", "page that KSM merged with all others of one mapping", .shape = ON_ONE,
     .limit = "memory", .needs = "CONFIG_KSM", .privileged = true, .exit = true, .call = "munmap()",
     .make = make, .release = release);
