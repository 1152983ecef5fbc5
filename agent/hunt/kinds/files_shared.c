// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

/* As many processes as objects use one table of descriptors (CLONE_FILES). */
static pid_t *pids;

static void add(int64_t i)
{
	pids[i] = child(CLONE_FILES, true);
	if (pids[i])
		return;
	wait_to_be_killed();
}

static void prepare(void)
{
	pids = array(sizeof(*pids));
}

static void remove_one(int64_t i)
{
	crowd_kill_one(pids[i]);
}

static void release(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++)
		MUST(kill(pids[i], SIGKILL));
	crowd_reap(pids);
}

KIND(files_shared, "processes", "forked process that shares the descriptors of its parent",
     .shape = ON_ONE, .limit = "nproc", .call = "kill() and waitpid() of all", .prepare = prepare,
     .add = add, .remove = remove_one, .release = release);
