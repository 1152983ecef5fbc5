/* SPDX-License-Identifier: GPL-2.0 */
/* A chain of processes in one process group, each of which is the child of the one before. */
#ifndef KTEARDOWN_HUNT_CHAIN_H
#define KTEARDOWN_HUNT_CHAIN_H

#include "hunt/kind.h"

#include <sched.h>
#include <sys/prctl.h>

static pid_t *chain_pids;

/* Makes one process for each object by clone() with such flags; each calls first(), if not NULL. */
static inline void chain_make(unsigned long flags, void (*first)(void))
{
	int64_t i;

	chain_pids = mmap(NULL, nr_objects * sizeof(*chain_pids), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST((long)chain_pids);
	/* The owner adopts those whose parents die first. */
	MUST(prctl(PR_SET_CHILD_SUBREAPER, 1));
	ready_make();
	if (child(0, true))
		return ready_wait();
	for (i = 0; i < nr_objects; i++) {
		setpgid(0, i ? chain_pids[0] : 0);
		chain_pids[i] = getpid();
		if (first)
			first();
		if (i + 1 == nr_objects)
			ready_say();
		else if (!child(flags, false))
			continue;
		wait_to_be_killed();
	}
}

/* For release() */
static inline void chain_release(void)
{
	int64_t i;

	MUST(kill(-chain_pids[0], SIGKILL));
	for (i = 0; i < nr_objects; i++)
		MUST(waitpid(-1, NULL, 0));
}

#endif
