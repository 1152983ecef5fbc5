// SPDX-License-Identifier: GPL-2.0
#include "nested_cgroups.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/cgroup.h"

#define ROOT "/sys/fs/cgroup"
#define TOP ROOT "/nest"
#define REMOVE_MS 10000

static int control(struct trial *t, const char *path, const char *what)
{
	char file[256];
	int error;

	snprintf(file, sizeof(file), "%s/cgroup.subtree_control", path);
	error = write_file(file, what);
	return error ? wl_fail(t, "%s: cannot write %s: %s", file, what, strerror(-error)) : 0;
}

static int limit(struct trial *t, const struct nested_cgroups *n, const char *file,
		 const char *text)
{
	char path[256];
	int error;

	snprintf(path, sizeof(path), "%s/%s", n->leaf, file);
	error = write_file(path, "%s", text);
	return error ? wl_fail(t, "%s: cannot write %s: %s", path, text, strerror(-error)) : 0;
}

static int limits(struct trial *t, const struct nested_cgroups *n)
{
	char text[64];

	if (n->quota_us) {
		snprintf(text, sizeof(text), "%lld %lld", (long long)n->quota_us,
			 (long long)n->period_us);
		if (limit(t, n, "cpu.max", text))
			return -1;
	}
	snprintf(text, sizeof(text), "%lld", (long long)n->memory_mb << 20);
	return n->memory_mb ? limit(t, n, "memory.max", text) : 0;
}

int nested_cgroups_make(struct trial *t, struct nested_cgroups *n)
{
	size_t len;
	int error;

	strcpy(n->leaf, ROOT);
	if (!n->depth && (n->quota_us || n->memory_mb))
		return wl_fail(t, "depth=0 is the root cgroup, which has no cpu.max and no "
				  "memory.max: set quota_us and memory_max_mb to 0");
	if (n->depth > NESTED_CGROUPS_MAX)
		return wl_fail(t, "depth %lld is too large: choose at most %d", (long long)n->depth,
			       NESTED_CGROUPS_MAX);
	for (int64_t level = 0; level < n->depth; level++) {
		if (control(t, n->leaf, "+cpu +memory +pids"))
			return -1;
		len = strlen(n->leaf);
		snprintf(n->leaf + len, sizeof(n->leaf) - len, level ? "/n" : "/nest");
		error = cgroup_make(n->leaf);
		if (error)
			return wl_fail(t, "cannot make %s: %s", n->leaf, strerror(-error));
	}
	return limits(t, n);
}

void nested_cgroups_remove(struct trial *t)
{
	char path[sizeof(((struct nested_cgroups *)NULL)->leaf)] = TOP;
	struct stat status;
	int error;

	for (int level = 1; level < NESTED_CGROUPS_MAX; level++)
		strcat(path, "/n");
	for (; strcmp(path, ROOT); *strrchr(path, '/') = '\0') {
		if (stat(path, &status))
			continue;
		error = cgroup_remove(path, REMOVE_MS);
		if (error)
			wl_fail(t, "cannot remove %s: %s", path, strerror(-error));
	}
	/* If the kernel lacks a controller, the root has nothing to turn off. */
	write_file(ROOT "/cgroup.subtree_control", "-cpu -memory -pids");
}
