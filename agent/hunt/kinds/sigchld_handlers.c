// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

static pid_t *pids;

static void handle(int signal)
{
	(void)signal;
}

static void make(void)
{
	MUST(signal(SIGCHLD, handle) == SIG_ERR ? -1 : 0);
	pids = array(sizeof(*pids));
	crowd_make(pids, CROWD_SAME_GROUP, NULL, NULL);
}

static void release(void)
{
	int64_t i;

	for (i = 0; i < nr_objects; i++)
		MUST(kill(pids[i], SIGKILL));
	for (i = nr_objects - 1; i >= 0; i--)
		while (waitpid(pids[i], NULL, 0) < 0)
			MUST(errno == EINTR ? 0 : -1);
}

KIND(sigchld_handlers, "processes", "child whose death runs a handler of SIGCHLD", .shape = OF_ONE,
     .limit = "nproc", .call = "kill() and waitpid() of all", .make = make, .release = release);
