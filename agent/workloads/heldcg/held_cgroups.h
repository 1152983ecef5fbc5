/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory cgroups that are removed after a process in each has made something that can hold
 * them: a file, swapped memory, a zombie.
 *
 * A process of its own enters each cgroup, and exits: the agent never enters one, so none of
 * its pages is charged to them.
 */
#ifndef KTEARDOWN_HELD_CGROUPS_H
#define KTEARDOWN_HELD_CGROUPS_H

#include <sys/types.h>

#include "workload.h"

#define HELD_PARENT CGROUP_ROOT "held" /* the parent of all of them */
/* A cgroup in HELD_PARENT that is not removed. */
#define HELD_OUTSIDE HELD_PARENT "/outside"
#define HELD_FILES "/tmp/held" /* a file system that contains only their files, 0, 1, ... */

enum holder {
	HOLDER_NONE, /* the process only enters the cgroup */
	HOLDER_FILE, /* a page of a file */
	HOLDER_SWAPPED, /* a page of a file that was swapped out before the removal */
	HOLDER_ZOMBIE, /* the process itself, which is not reaped */
	HOLDER_CHILD, /* a removed cgroup in the cgroup, which has a page as above */
};

struct held {
	enum holder holder;
	/* The process makes the object in HELD_OUTSIDE instead, and another one enters the cgroup.
	 */
	bool outside;
	int64_t count;
	pid_t *processes; /* one for each object; 0: reaped */
};

/* How many bytes of files, and how many swapped bytes, the objects should have. */
int64_t held_file_bytes(const struct held *h);
int64_t held_swapped_bytes(const struct held *h);
/* How many cgroups are removed: with HOLDER_CHILD two for each object. */
int64_t held_removed(const struct held *h);

/* Makes and removes the cgroups. Returns 0, or wl_fail()'s value. */
int held_make(struct trial *t, struct held *h);
/* How many of the processes are zombies. */
int64_t held_zombies(const struct held *h);
/* Deletes the files and reaps the zombies. Returns 0, or wl_fail()'s value. */
int held_release(struct trial *t, struct held *h);

#endif
