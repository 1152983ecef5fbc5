// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/waiters.h"

static void wait_for_it(int64_t i)
{
	(void)i;
	open("file", O_RDWR);
}

static void make(void)
{
	int fd = make_file("file");

	/* The signal that a breaker causes: not to be killed by it. */
	signal(SIGIO, SIG_IGN);
	MUST(fcntl(fd, F_SETLEASE, F_WRLCK));
	waiters_make(NULL, wait_for_it);
}

KIND(lease_breakers, "files", "process whose open() waits for the lease of one file",
     .shape = ON_ONE, .limit = "nproc", .needs = "CONFIG_FILE_LOCKING", .make = make,
     WAITERS_KILLED);
