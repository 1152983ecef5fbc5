/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Makes dying cgroups: memory cgroups that were removed while a page of a file is still
 * charged to them.
 *
 * Each is made, entered, left and removed by a process, the maker. The maker exits before
 * anything is measured, since its own pages pin a cgroup too.
 */
#ifndef KTEARDOWN_DYING_CGROUPS_H
#define KTEARDOWN_DYING_CGROUPS_H

#include "workload.h"

#define DYING_PARENT CGROUP_ROOT "dying" /* the parent of all of them */
#define DYING_FILES "/tmp/dying" /* a file system that contains only their files, 0, 1, ... */
#define DYING_FILE_BYTES 512

struct dying_times {
	int64_t cycle_ns; /* for each: from making the cgroup until it is removed */
	int64_t create_ns, rmdir_ns; /* the medians of mkdir and rmdir alone; -1: not known */
};

/*
 * Makes count of them. script: a shell does it, with the steps of the posting. Returns 0,
 * or wl_fail()'s value.
 */
int dying_make(struct trial *t, int64_t count, bool script, struct dying_times *times);

#endif
