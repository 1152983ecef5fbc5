/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A process that makes zombies and keeps them: its children exited, and it does not wait
 * for them.
 */
#ifndef KTEARDOWN_ZOMBIE_PARENT_H
#define KTEARDOWN_ZOMBIE_PARENT_H

#include "workload.h"

struct zombie_parent {
	int pid; /* 0: none */
	int answers; /* our end of its pipe */
};

/*
 * Starts the parent and returns when each of its children is a zombie and the parent
 * sleeps; calls wl_alive() meanwhile. shared: the children share the parent's memory while
 * they run, which costs a tenth of a fork. cgroup: the folder of a cgroup that the parent
 * enters first, or NULL. Returns 0, or wl_fail()'s value.
 */
int zombie_parent_start(struct trial *t, struct zombie_parent *h, int64_t zombies, bool shared,
			const char *cgroup);

/*
 * How many zombies the parent has, according to the kernel, child by child. The parent
 * must run to answer: an answer proves that it exists and was thawed. -errno if there is
 * no answer.
 */
int64_t zombie_parent_count(struct zombie_parent *h);

/* Kills the parent and waits until it and all its zombies are gone. */
void zombie_parent_stop(struct zombie_parent *h);

#endif
