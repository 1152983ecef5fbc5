// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/chain.h"

static void make(void)
{
	chain_make(CLONE_VFORK, NULL);
}

KIND(vfork_chain, "processes", "process that waits in vfork() for the next one", .shape = OF_ONE,
     .limit = "nproc", .call = "kill(group), waitpid(-1) of all", .make = make,
     .release = chain_release);
