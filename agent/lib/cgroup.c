// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* nftw() */
#include "cgroup.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cgroup_make(const char *path)
{
	return mkdir(path, 0755) && errno != EEXIST ? -errno : 0;
}

int cgroup_enter(const char *path)
{
	char file[256];

	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	return write_file(file, "0");
}

int cgroup_remove(const char *path, int64_t limit_ms)
{
	int64_t end = now_ns() + limit_ms * 1000000;

	while (rmdir(path)) {
		if (errno != EBUSY || now_ns() > end)
			return -errno;
		sleep_ms(1);
	}
	return 0;
}

static int64_t tree_limit_ms;
static int tree_error;

static int remove_folder(const char *path, const struct stat *info, int type, struct FTW *place)
{
	(void)info;
	(void)place;
	if (type == FTW_DP) {
		int error = cgroup_remove(path, tree_limit_ms);

		tree_error = error ? error : tree_error;
	}
	return 0;
}

int cgroup_remove_tree(const char *path, int64_t limit_ms)
{
	tree_limit_ms = limit_ms;
	tree_error = 0;
	if (nftw(path, remove_folder, 8, FTW_DEPTH | FTW_PHYS) && errno != ENOENT)
		return -errno;
	return tree_error;
}

int64_t cgroup_value_in(const char *text, const char *key)
{
	size_t len = strlen(key);

	while (text) {
		if (!strncmp(text, key, len) && text[len] == ' ')
			return strtoll(text + len + 1, NULL, 10);
		text = strchr(text, '\n');
		if (text)
			text++;
	}
	return -ENOENT;
}

int64_t cgroup_value(const char *path, const char *file, const char *key)
{
	char name[256], text[8192];
	int len;

	snprintf(name, sizeof(name), "%s/%s", path, file);
	len = read_file(name, text, sizeof(text));
	return len < 0 ? len : cgroup_value_in(text, key);
}
