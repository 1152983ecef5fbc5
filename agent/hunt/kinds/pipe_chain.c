// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

/* Each process holds the ends of a pipe from the one before and to the next one, and reads. */
static pid_t *pids;
static int from = -1;

static void add(int64_t i)
{
	int ends[2];
	char c;

	MUST(pipe2(ends, O_CLOEXEC));
	pids[i] = child(0, true);
	if (!pids[i]) {
		close(ends[0]);
		setpgid(0, i ? pids[0] : 0);
		if (from >= 0)
			MUST(read(from, &c, 1));
		wait_to_be_killed();
	}
	setpgid(pids[i], pids[0]);
	close(from);
	close(ends[1]);
	from = ends[0];
}

static void prepare(void)
{
	pids = array(sizeof(*pids));
}

static void release(void)
{
	MUST(kill(-pids[0], SIGKILL));
	crowd_reap(pids);
}

KIND(pipe_chain, "processes", "process that reads from the pipe of the one before", .shape = OF_ONE,
     .limit = "nproc", .call = "kill(group), waitpid() of all", .prepare = prepare, .add = add,
     .release = release);
