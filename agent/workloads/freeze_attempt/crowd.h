/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes that exit while the freezer runs, and processes that fork until it stops them.
 *
 * All are children of a holder, which does not wait for them until it is dismissed.
 */
#ifndef KTEARDOWN_FREEZE_CROWD_H
#define KTEARDOWN_FREEZE_CROWD_H

#include <sys/types.h>

#include "workload.h"

#define CROWD_FORKERS 1000 /* at most */

#define CROWD_PRIORITY 50 /* of the holder and of its caller: real-time */

struct crowd {
	pid_t holder; /* 0: none */
	int orders, answers;
	pid_t *exiting; /* shared with the holder */
	int64_t count;
};

/*
 * Starts it and returns when each of the `exiting` processes is in the kernel's exit, past the
 * release of its vfork() parent and before the release of its memory, in which it has mapped
 * `pages` pages, and when `nr_forkers` processes are ready to fork. The caller has the priority
 * CROWD_PRIORITY, so none of them runs until it sleeps. 0 or -errno.
 */
int crowd_start(struct crowd *c, int64_t exiting, int64_t pages, int64_t nr_forkers);
/* How many of the exiting ones are zombies. */
int64_t crowd_exited(const struct crowd *c);
/* Kills the forkers, waits for all, and returns when the holder has exited too. 0 or -errno. */
int crowd_dismiss(struct crowd *c);

#endif
