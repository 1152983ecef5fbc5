// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/cgroups.h"
#include "hunt/lib/crowd.h"

/* All spin until the quota of their cgroup is used up; then all are throttled. */
static pid_t *pids;
static int gate[2];

static void enter(int64_t i)
{
	(void)i;
	cgroup_enter(0, 0);
	close(gate[1]);
}

static void spin(int64_t i)
{
	volatile bool forever = true;
	char c;

	(void)i;
	if (!read(gate[0], &c, 1))
		while (forever)
			;
}

static void make(void)
{
	pids = array(sizeof(*pids));
	cgroups_make("+cpu");
	cgroup_add(0);
	MUST(pipe2(gate, O_CLOEXEC));
	crowd_make(pids, CROWD_SAME_GROUP, enter, spin);
	cgroup_write(0, "cpu.max", "10000 100000");
	close(gate[1]);
	usleep(20000);
}

static void release(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++)
		MUST(kill(pids[i], SIGKILL));
	crowd_reap(pids);
}

static int64_t left(void)
{
	rmdir(cgroup_path(0, NULL));
	return cgroups_left();
}

KIND(quota_killed, "cgroups", "throttled process of one cgroup with a CPU quota", .shape = ON_ONE,
     .limit = "nproc", .needs = "CONFIG_CFS_BANDWIDTH", .privileged = true,
     .call = "kill() and waitpid() of all", .make = make, .release = release, .left = left);
