// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"
#include "hunt/lib/waiters.h"

static void look(int64_t i)
{
	static const char *const files[] = {"status", "stat", "maps", "fd/0"};
	char path[40];
	struct stat unused;
	size_t k;

	for (k = 0; k < sizeof(files) / sizeof(files[0]); k++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", waiters[i], files[k]);
		lstat(path, &unused);
	}
}

static void make(void)
{
	int64_t i;

	waiters_make(NULL, NULL);
	for (i = 0; i < nr_objects; i++)
		look(i);
}

KIND(proc_processes, "inodes", "process whose folder of /proc was looked into", .shape = OWNERS,
     .limit = "nproc", .make = make, WAITERS_KILLED);
