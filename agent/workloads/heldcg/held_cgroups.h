/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory cgroups that are removed after a process in each has made something that can hold them
 * (holders.h).
 *
 * A process of its own enters each cgroup, and exits: the agent never enters one, so none of
 * its pages is charged to them.
 */
#ifndef KTEARDOWN_HELD_CGROUPS_H
#define KTEARDOWN_HELD_CGROUPS_H

#include "holders.h"

struct held {
	const struct holder *holder;
	/* The process makes the object in HELD_OUTSIDE, and another one enters the cgroup. */
	bool outside;
	int64_t count;
	int64_t *kept; /* what the agent keeps of each object; 0: nothing, or released */
};

/* How many bytes of files, and how many swapped bytes, the objects should have. */
int64_t held_file_bytes(const struct held *h);
int64_t held_swapped_bytes(const struct held *h);
/* How many cgroups are removed: two for each object that is nested. */
int64_t held_removed(const struct held *h);

/* Makes and removes the cgroups. Returns 0, or wl_fail()'s value. */
int held_make(struct trial *t, struct held *h);
/* How many of the processes are zombies. */
int64_t held_zombies(const struct held *h);
/* How many of the objects exist; h->count if the holder has nothing to count. */
int64_t held_objects(const struct held *h);
/* Releases the objects. Returns 0, or wl_fail()'s value. */
int held_release(struct trial *t, struct held *h);
/* Releases what it can after a failure. */
void held_abandon(struct held *h);

/* What the kernel charges for the objects, in bytes. */
struct charged {
	int64_t inside; /* to the cgroups that were removed, or to their parent after that */
	int64_t outside; /* to HELD_OUTSIDE */
};
/* Reads it from the files of HELD_PARENT and HELD_OUTSIDE. 0 or -errno. */
int held_charged(const struct held *h, struct charged *charged);
/*
 * Whether the growth from before to after is what the objects are charged for, in the place where
 * they were made and nowhere else.
 */
bool held_charges_right(const struct held *h, const struct charged *before,
			const struct charged *after);

#endif
