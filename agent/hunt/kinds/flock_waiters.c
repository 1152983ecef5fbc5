// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/waiters.h"

#include <sys/file.h>

static void wait_for_it(int64_t i)
{
	(void)i;
	flock(make_file("file"), LOCK_EX);
}

static void make(void)
{
	MUST(flock(make_file("file"), LOCK_EX));
	waiters_make(NULL, wait_for_it);
}

KIND(flock_waiters, "files", "process that waits for a flock", .shape = ON_ONE, .limit = "nproc",
     .needs = "CONFIG_FILE_LOCKING", .make = make, WAITERS_KILLED);
