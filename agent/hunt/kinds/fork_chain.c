// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/chain.h"

static void make(void)
{
	chain_make(0, NULL);
}

KIND(fork_chain, "processes", "process that the one before has forked", .shape = OF_ONE,
     .limit = "nproc", .call = "kill(group), waitpid(-1) of all", .make = make,
     .release = chain_release);
