// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"
#include "hunt/lib/ptys.h"

static pid_t *pids;

/* The master is closed with its process: a hangup of the session. */
static void start_session(int64_t i)
{
	(void)i;
	MUST(setsid());
	MUST(ioctl(pty_slave(pty_master()), TIOCSCTTY, 0));
}

static void make(void)
{
	pids = array(sizeof(*pids));
	crowd_make(pids, CROWD_SAME_GROUP, start_session, NULL);
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

KIND(pty_sessions, "ptys", "process that leads a session with a pseudoterminal", .shape = OWNERS,
     .limit = "pty_max", .needs = "CONFIG_UNIX98_PTYS", .call = "kill() and wait()",
     .prepare = ptys_prepare, .make = make, .remove = remove_one, .release = release);
