// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/keys.h"
#include "hunt/lib/waiters.h"

static void join(int64_t i)
{
	(void)i;
	keyctl(KEYCTL_JOIN_SESSION_KEYRING, 0, 0);
}

static void make(void)
{
	waiters_make(join, NULL);
}

KIND(keyrings_processes, "keys", "process with a session keyring of its own", .shape = OWNERS,
     .limit = "nproc", .needs = "CONFIG_KEYS", .make = make, WAITERS_KILLED);
