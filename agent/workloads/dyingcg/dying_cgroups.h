/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Makes dying cgroups: memory cgroups that were removed while a page of a file is
 * still charged to them. Each is made, entered, left and removed by a process
 * that ends before anything is measured, since its own pages pin a cgroup too.
 */
#ifndef KTEARDOWN_DYING_CGROUPS_H
#define KTEARDOWN_DYING_CGROUPS_H

#include "workload.h"

#define DYING_PARENT CGROUP_ROOT "dying" /* their parent */
#define DYING_FILES "/tmp/dying" /* a file system with nothing but their files, 0, 1, ... */
#define DYING_FILE_BYTES 512

struct dying_times {
	int64_t cycle_ns; /* for each, from making the cgroup until it is removed */
	int64_t create_ns, rmdir_ns; /* mkdir and rmdir alone, the medians; -1: not known */
};

/* Make count of them. script: a shell does it, by the posting's steps. 0, or wl_fail()'s value. */
int dying_make(struct trial *t, int64_t count, bool script, struct dying_times *times);

#endif
