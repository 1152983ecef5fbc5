// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* DT_DIR */
#include "leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#include "lib/cgroup.h"

#define SLABS "/sys/kernel/slab"
#define FILLERS CGROUP_ROOT "fillers"
/* With 32 CPUs a chunk has up to 8 MB, and a cgroup takes 50 kB of it or more. */
#define COUNT 300
#define REMOVE_MS 10000

int leftovers_shrink_slabs(void)
{
	DIR *caches = opendir(SLABS);
	struct dirent *cache;
	char path[320];
	int error = 0;

	if (!caches)
		return -errno;
	while (!error && (cache = readdir(caches))) {
		/* Links are other names of a cache. */
		if (cache->d_type != DT_DIR || cache->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), SLABS "/%s/shrink", cache->d_name);
		error = write_file(path, "1");
	}
	closedir(caches);
	return error;
}

int leftovers_fill(void)
{
	int error = cgroup_make(FILLERS);
	char path[64];

	if (!error)
		error = write_file(FILLERS "/cgroup.subtree_control", "+memory");
	for (int i = 0; i < COUNT && !error; i++) {
		snprintf(path, sizeof(path), FILLERS "/%d", i);
		error = cgroup_make(path);
	}
	return error;
}

int leftovers_empty(void)
{
	return cgroup_remove_tree(FILLERS, REMOVE_MS);
}
