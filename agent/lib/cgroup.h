/* SPDX-License-Identifier: GPL-2.0 */
/* Control groups, version 2: making, entering and removing them, and reading their files. */
#ifndef KTEARDOWN_CGROUP_H
#define KTEARDOWN_CGROUP_H

#include "workload.h"

#define CGROUP_ROOT "/sys/fs/cgroup/"

/* A cgroup that exists already is used. 0 or -errno. */
int cgroup_make(const char *path);
/* Moves the calling process into the cgroup. 0 or -errno. */
int cgroup_enter(const char *path);
/*
 * An exited task leaves its cgroup a moment after it was reaped, so removal is tried until
 * the limit. 0 or -errno.
 */
int cgroup_remove(const char *path, int64_t limit_ms);
/*
 * Removes the cgroup and those below it, the innermost first; the limit is for each of
 * them. 0, also if it does not exist, or the last -errno.
 */
int cgroup_remove_tree(const char *path, int64_t limit_ms);
/*
 * The number after the key in a file such as cgroup.stat or memory.stat; -errno, or
 * -ENOENT if the key is missing.
 */
int64_t cgroup_value(const char *path, const char *file, const char *key);
/* The same from the text of the file: lines of a key, a blank and a number. */
int64_t cgroup_value_in(const char *text, const char *key);

#endif
