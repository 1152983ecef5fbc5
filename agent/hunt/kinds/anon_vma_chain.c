// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <sys/prctl.h>

static pid_t first;

/* Each has an anon_vma in common with all that came before. */
static void chain(void)
{
	int64_t i;

	MUST(setpgid(0, 0));
	for (i = 1; i < nr_objects; i++)
		if (child(0, true))
			wait_to_be_killed();
	ready_say();
	wait_to_be_killed();
}

static void make(void)
{
	MUST(prctl(PR_SET_CHILD_SUBREAPER, 1));
	ready_make();
	first = child(0, true);
	if (!first)
		chain();
	ready_wait();
}

static void release(void)
{
	int64_t i;

	MUST(kill(-first, SIGKILL));
	for (i = 0; i < nr_objects; i++)
		MUST(wait(NULL));
}

KIND(anon_vma_chain, "memory", "process that the one before it forked, all alive", .shape = OF_ONE,
     .limit = "nproc", .call = "kill(group) and wait()", .make = make, .release = release);
