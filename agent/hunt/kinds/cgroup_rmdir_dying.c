// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/cgroups.h"
#include "hunt/lib/crowd.h"

static pid_t *pids;

static void enter(int64_t i)
{
	(void)i;
	cgroup_enter(0, 0);
}

static void make(void)
{
	pids = array(sizeof(*pids));
	cgroups_prepare();
	cgroup_add(0);
	crowd_make(pids, CROWD_SAME_GROUP, enter, NULL);
}

/* A process that was waited for may still be on its way out: then the cgroup is busy. */
static void release(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++)
		MUST(kill(pids[i], SIGKILL));
	crowd_reap(pids);
	while (rmdir(cgroup_path(0, NULL))) {
		if (errno != EBUSY)
			owner_failed("rmdir()");
		usleep(100);
	}
}

KIND(cgroup_rmdir_dying, "cgroups", "process of a cgroup that is removed once it was waited for",
     .shape = ON_ONE, .limit = "nproc", .privileged = true,
     .call = "kill() and waitpid() of all, rmdir()", .make = make, .release = release,
     .left = cgroups_left);
