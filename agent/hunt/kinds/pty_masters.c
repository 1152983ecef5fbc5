// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ptys.h"

static int open_one(int64_t i)
{
	(void)i;
	return pty_master();
}

KIND(pty_masters, "ptys", "pseudoterminal", .shape = OF_ONE, .limit = "pty_max",
     .needs = "CONFIG_UNIX98_PTYS", .prepare = ptys_prepare, .open = open_one);
