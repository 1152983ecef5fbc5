// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

static pid_t pid;

static void prepare(void)
{
	pid = child(0, true);
	if (!pid)
		wait_to_be_killed();
}

static int open_one(int64_t i)
{
	(void)i;
	return MUST(syscall(SYS_pidfd_open, pid, 0));
}

KIND(pidfds, "files", "pidfd of one process", .shape = ON_ONE, .limit = "nofile",
     .prepare = prepare, .open = open_one);
