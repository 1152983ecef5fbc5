// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/cgroups.h"
#include "hunt/lib/crowd.h"

/*
 * A move waits for a grace period (cgroup_attach_lock()). Since Linux 6.18 it does not with the
 * mount option favordynmods: 0568f89d4fb8, "cgroup: replace global percpu_rwsem with per
 * threadgroup resem when writing to cgroup.procs". The pause is longer than a grace period, after
 * which the lock is cheap for readers again, and the next move has to wait, too.
 */
#define PAUSE_US 20000

static pid_t *pids;

static void enter(int64_t i)
{
	(void)i;
	cgroup_enter(0, 0);
}

static void make(void)
{
	pids = array(sizeof(*pids));
	cgroups_make("");
	cgroup_add(0);
	cgroup_add(1);
	crowd_make(pids, CROWD_SAME_GROUP, enter, NULL);
}

static void remove_one(int64_t i)
{
	cgroup_enter(1, pids[i]);
	usleep(PAUSE_US);
}

static int64_t left(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++)
		MUST(kill(pids[i], SIGKILL));
	crowd_reap(pids);
	cgroup_remove(0);
	cgroup_remove(1);
	return cgroups_left();
}

KIND(cgroup_moves, "cgroups", "process that is moved to another cgroup", .shape = ON_ONE,
     .limit = "nproc", .privileged = true, .make = make, .remove = remove_one, .left = left);
