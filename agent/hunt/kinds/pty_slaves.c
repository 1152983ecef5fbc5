// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ptys.h"

static int master;

static void prepare(void)
{
	ptys_prepare();
	master = pty_master();
}

static int open_one(int64_t i)
{
	(void)i;
	return pty_slave(master);
}

static void release(void)
{
	MUST(close(master));
}

KIND(pty_slaves, "ptys", "open slave of one pseudoterminal", .shape = ON_ONE, .limit = "nofile",
     .needs = "CONFIG_UNIX98_PTYS", .call = "close(master)", .prepare = prepare, .open = open_one,
     .release = release);
