/* SPDX-License-Identifier: GPL-2.0 */
/* A process that makes zombies and holds them: its children exited, and it never waits for them. */
#ifndef KTEARDOWN_ZOMBIE_PARENT_H
#define KTEARDOWN_ZOMBIE_PARENT_H

#include "workload.h"

struct zombie_parent {
	int pid; /* 0: none */
	int answers; /* our end of its pipe */
};

/*
 * Start a holder and return when each of its children is a zombie and the
 * holder sleeps; wl_alive() meanwhile. shared: the children share the holder's
 * memory while they live, which costs a tenth of a fork. cgroup: a cgroup's
 * folder that the holder enters first, or NULL. 0, or wl_fail()'s value.
 */
int zombie_parent_start(struct trial *t, struct zombie_parent *h, int64_t zombies, bool shared,
			const char *cgroup);

/*
 * How many zombies the holder has, asked of the kernel child by child. The
 * holder must run to answer: an answer proves it alive and thawed. -errno
 * where none comes.
 */
int64_t zombie_parent_count(struct zombie_parent *h);

/* Kill the holder and wait until it and all its zombies are gone. */
void zombie_parent_stop(struct zombie_parent *h);

#endif
