// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ptys.h"

static struct pair {
	int master, slave;
} * pairs;

static void prepare(void)
{
	ptys_prepare();
	pairs = array(sizeof(*pairs));
}

static void add(int64_t i)
{
	pairs[i].master = pty_master();
	pairs[i].slave = pty_slave(pairs[i].master);
	MUST(write(pairs[i].slave, "x", 1));
}

static void remove_one(int64_t i)
{
	MUST(close(pairs[i].master));
	MUST(close(pairs[i].slave));
}

KIND(pty_pairs, "ptys", "pseudoterminal with an open slave and a byte from it", .shape = OF_ONE,
     .limit = "pty_max", .needs = "CONFIG_UNIX98_PTYS", .exit = true, .prepare = prepare,
     .add = add, .remove = remove_one);
