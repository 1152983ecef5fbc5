/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What can be done to compressed pages, each by a process of its own, until it is told to stop:
 * all of it at the same time is a test of the allocator that holds them.
 */
#ifndef KTEARDOWN_STRESSORS_H
#define KTEARDOWN_STRESSORS_H

#include "zram_disk.h"

#define STRESSORS_MAX 8
/* A cgroup of little memory, where some of them live. */
#define STRESS_CGROUP "/sys/fs/cgroup/stress"

/* Shared by all. */
struct stress {
	_Atomic bool stop;
	int64_t pages; /* that each works on */
	const char *compact_file; /* of the device that is swapped to */
	struct zram_disk disk; /* of the process that works on it */
	_Atomic int64_t passes[STRESSORS_MAX];
	_Atomic int errors[STRESSORS_MAX]; /* -errno of one that could not go on */
	_Atomic int64_t wrong_pages; /* of memory that came back from swap with other data */
	_Atomic int64_t wrong_blocks; /* of the disk */
	_Atomic int64_t refused; /* writes below the disk's limit */
	_Atomic int64_t destroyed; /* pools, right after a burst of frees */
};

struct stressor {
	const char *name;
	/* In a process of its own; index: its place in passes and errors. 0 or -errno. */
	int (*run)(struct stress *s, int index);
	bool in_small_cgroup; /* in STRESS_CGROUP */
};

/* Ended by a name of NULL; at most STRESS_MAX. */
extern const struct stressor stressors[];

#endif
