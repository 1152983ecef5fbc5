/* SPDX-License-Identifier: GPL-2.0 */
/* Processes with memory of their own, forked by one parent: a group that is killed. */
#ifndef KTEARDOWN_HUNT_FORKS_H
#define KTEARDOWN_HUNT_FORKS_H

#include "hunt/kind.h"

static pid_t *forks;

/* One process for each object; each calls first(). */
static inline void forks_make(void (*first)(int64_t i))
{
	int64_t i;

	forks = array(sizeof(*forks));
	for (i = 0; i < nr_objects; i++) {
		ready_make();
		forks[i] = child(0, true);
		if (!forks[i]) {
			MUST(setpgid(0, forks[0]));
			first(i);
			ready_say();
			wait_to_be_killed();
		}
		ready_wait();
	}
}

/* The youngest is reaped first, so that each wait() finds its child at once. */
static inline void forks_kill(void)
{
	int64_t i;

	/* With none, the group would be that of the owner. */
	if (!nr_objects)
		return;
	MUST(kill(-forks[0], SIGKILL));
	for (i = nr_objects - 1; i >= 0; i--)
		MUST(waitpid(forks[i], NULL, 0));
}

static inline void forks_kill_one(int64_t i)
{
	MUST(kill(forks[i], SIGKILL));
	MUST(waitpid(forks[i], NULL, 0));
}

/* As the arguments of KIND(): they are killed one by one, or as a group. */
#define FORKS_KILLED                                                                               \
	.call = "kill(group) and wait()", .remove = forks_kill_one, .release = forks_kill

#endif
