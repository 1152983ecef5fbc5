// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"
#include "hunt/lib/ptys.h"

static pid_t *pids;
static int slave;

static void make(void)
{
	ptys_prepare();
	pids = array(sizeof(*pids));
	MUST(setsid());
	signal(SIGHUP, SIG_IGN);
	slave = pty_slave(pty_master());
	MUST(ioctl(slave, TIOCSCTTY, 0));
	crowd_make(pids, CROWD_OWN_GROUPS, NULL, NULL);
}

/* It is taken from every process of the session. */
static void release(void)
{
	MUST(ioctl(slave, TIOCNOTTY));
}

KIND(pty_session_members, "ptys", "process of one session whose leader gives up the pseudoterminal",
     .shape = ON_ONE, .limit = "nproc", .needs = "CONFIG_UNIX98_PTYS", .call = "ioctl(TIOCNOTTY)",
     .make = make, .release = release);
