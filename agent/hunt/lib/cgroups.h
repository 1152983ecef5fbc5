/* SPDX-License-Identifier: GPL-2.0 */
/* Cgroups below one cgroup of the owner's own, which is removed when it is empty. */
#ifndef KTEARDOWN_HUNT_CGROUPS_H
#define KTEARDOWN_HUNT_CGROUPS_H

#include "hunt/kind.h"

#define CGROUPS_ALL "+memory +pids +cpu +cpuset"

static char cgroups_base[64];

/* The path of a file of object i; i < 0: of the cgroup that all are in. */
static inline const char *cgroup_path(int64_t i, const char *file)
{
	static char path[128];
	int len = snprintf(path, sizeof(path), "%s", cgroups_base);

	if (i >= 0)
		len += snprintf(path + len, sizeof(path) - len, "/%lld", (long long)i);
	if (file)
		snprintf(path + len, sizeof(path) - len, "/%s", file);
	return path;
}

static inline void cgroup_write(int64_t i, const char *file, const char *text)
{
	int error = put_file(cgroup_path(i, file), text);

	if (error) {
		errno = -error;
		owner_failed(file);
	}
}

/* Controllers are named as in subtree_control; what the kernel has not is left out. */
static inline void cgroups_make(const char *controllers)
{
	char copy[96], *at, *save = NULL;

	snprintf(cgroups_base, sizeof(cgroups_base), "/sys/fs/cgroup/hunt-%d", getpid());
	MUST(mkdir(cgroups_base, 0700));
	snprintf(copy, sizeof(copy), "%s", controllers);
	for (at = strtok_r(copy, " ", &save); at; at = strtok_r(NULL, " ", &save)) {
		put_file("/sys/fs/cgroup/cgroup.subtree_control", at);
		put_file(cgroup_path(-1, "cgroup.subtree_control"), at);
	}
}

static inline void cgroups_prepare(void)
{
	cgroups_make(CGROUPS_ALL);
}

static inline void cgroup_add(int64_t i)
{
	MUST(mkdir(cgroup_path(i, NULL), 0700));
}

static inline void cgroup_remove(int64_t i)
{
	MUST(rmdir(cgroup_path(i, NULL)));
}

/* For left(): the cgroup that all were in is only removed if none is left in it. */
static inline int64_t cgroups_left(void)
{
	return rmdir(cgroups_base) ? 1 : 0;
}

/* Moves a process, or the caller if it is 0. */
static inline void cgroup_enter(int64_t i, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	cgroup_write(i, "cgroup.procs", text);
}

#endif
