// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/threads.h"

#include <linux/futex.h>

static int word;

static void wait_for_it(void)
{
	syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
}

static void make(void)
{
	MUST(syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	threads_make(wait_for_it);
}

KIND(threads_futex_pi, "processes",
     "thread that waits for one priority-inheriting futex; its process is killed", .shape = ON_ONE,
     .limit = "nproc", .exit = true, .make = make, .needs = "CONFIG_FUTEX_PI");
