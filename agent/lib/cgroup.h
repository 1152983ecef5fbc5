/* SPDX-License-Identifier: GPL-2.0 */
/* Control groups, version 2: made, entered, removed, and what they say of themselves. */
#ifndef KTEARDOWN_CGROUP_H
#define KTEARDOWN_CGROUP_H

#include "workload.h"

#define CGROUP_ROOT "/sys/fs/cgroup/"

/* One that is there already is used. 0 or -errno. */
int cgroup_make(const char *path);
/* The calling process moves in. 0 or -errno. */
int cgroup_enter(const char *path);
/* The last of the dead leave their cgroup a moment after they were reaped: tried for so long. 0 or
 * -errno. */
int cgroup_remove(const char *path, int64_t limit_ms);
/* Together with those in it, the innermost first: so long for each. 0, also where there is none, or
 * the last -errno. */
int cgroup_remove_tree(const char *path, int64_t limit_ms);
/* What a file such as cgroup.stat or memory.stat says after the key; -errno, -ENOENT without such a
 * key. */
int64_t cgroup_value(const char *path, const char *file, const char *key);
/* The same of its text: lines of a key, a blank and a number. */
int64_t cgroup_value_in(const char *text, const char *key);

#endif
