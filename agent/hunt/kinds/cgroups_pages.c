// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/cgroups.h"

static void prepare(void)
{
	cgroups_make("+memory");
}

/* A process in the cgroup writes a file, which stays; the process does not. */
static void add(int64_t i)
{
	char path[32], page[4096] = "page";
	pid_t pid;
	int fd;

	cgroup_add(i);
	pid = child(0, true);
	if (!pid) {
		cgroup_enter(i, 0);
		snprintf(path, sizeof(path), "page%lld", (long long)i);
		fd = MUST(open(path, O_WRONLY | O_CREAT, 0600));
		MUST(write(fd, page, sizeof(page)));
		_exit(0);
	}
	MUST(waitpid(pid, NULL, 0));
}

KIND(cgroups_pages, "cgroups", "memory cgroup that page cache keeps after its removal",
     .shape = OF_ONE, .limit = "memory_cgroups", .needs = "CONFIG_MEMCG", .privileged = true,
     .prepare = prepare, .add = add, .remove = cgroup_remove, .left = cgroups_left);
