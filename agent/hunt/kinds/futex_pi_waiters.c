// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

#include <linux/futex.h>

static int word;

static pid_t *pids;

static void wait_for_it(int64_t i)
{
	(void)i;
	syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, NULL, NULL, 0);
}

static void make(void)
{
	/* The owner of the futex is the owner of the objects. */
	MUST(syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, NULL, NULL, 0));
	pids = array(sizeof(*pids));
	crowd_make(pids, CROWD_ONE_GROUP, NULL, wait_for_it);
	/* All wait now. */
	usleep(20000);
}

static void remove_one(int64_t i)
{
	crowd_kill_one(pids[i]);
}

static void release(void)
{
	MUST(kill(-pids[0], SIGKILL));
	crowd_reap(pids);
}

KIND(futex_pi_waiters, "processes", "process that waits for one priority-inheriting futex",
     .shape = ON_ONE, .limit = "nproc", .call = "kill(group), waitpid() of all", .make = make,
     .remove = remove_one, .release = release, .needs = "CONFIG_FUTEX_PI");
