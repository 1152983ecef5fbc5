/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stressors: processes that do to compressed pages all that can be done, each one thing,
 * until they are stopped. Running all of them at the same time is a test of the allocator
 * that holds the pages.
 */
#ifndef KTEARDOWN_STRESSORS_H
#define KTEARDOWN_STRESSORS_H

#include "zram_disk.h"

#define STRESSORS_MAX 8
/* A cgroup with little memory, in which some of them run. */
#define STRESS_CGROUP "/sys/fs/cgroup/stress"

/* What all of them share. */
struct stress {
	_Atomic bool stop;
	int64_t pages; /* that each works on */
	const char *compact_file; /* of the device that is swapped to */
	struct zram_disk disk; /* of the stressor that works on it */
	_Atomic int64_t passes[STRESSORS_MAX];
	_Atomic int errors[STRESSORS_MAX]; /* the -errno of a stressor that could not continue */
	_Atomic int64_t wrong_pages; /* of memory that was read back from swap with other data */
	_Atomic int64_t wrong_blocks; /* of the disk */
	_Atomic int64_t destroyed; /* pools that were destroyed right after a burst of frees */
};

struct stressor {
	const char *name;
	/* Runs in a process of its own; index: its place in passes and errors. 0 or -errno. */
	int (*run)(struct stress *s, int index);
	bool in_small_cgroup; /* runs in STRESS_CGROUP */
};

/* Ended by a NULL name; at most STRESSORS_MAX. */
extern const struct stressor stressors[];

#endif
