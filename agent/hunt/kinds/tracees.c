// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

#include <sys/ptrace.h>

static pid_t tracer;

static void make(void)
{
	pid_t *pids = array(sizeof(*pids));
	int64_t i;

	crowd_make(pids, CROWD_ONE_GROUP, NULL, NULL);
	ready_make();
	tracer = child(0, true);
	if (tracer)
		return ready_wait();
	for (i = 0; i < nr_objects; i++)
		MUST(ptrace(PTRACE_SEIZE, pids[i], NULL, NULL));
	ready_say();
	wait_to_be_killed();
}

static void release(void)
{
	MUST(kill(tracer, SIGKILL));
	MUST(waitpid(tracer, NULL, 0));
}

KIND(tracees, "processes", "process whose tracer is killed", .shape = OF_ONE, .limit = "nproc",
     .call = "kill(tracer)", .make = make, .release = release);
