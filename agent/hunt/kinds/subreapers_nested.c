// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/chain.h"

static void become_subreaper(void)
{
	MUST(prctl(PR_SET_CHILD_SUBREAPER, 1));
}

static void make(void)
{
	chain_make(0, become_subreaper);
}

KIND(subreapers_nested, "processes", "process below the one before, each a subreaper",
     .shape = OF_ONE, .limit = "nproc", .call = "kill(group), waitpid(-1) of all", .make = make,
     .release = chain_release);
