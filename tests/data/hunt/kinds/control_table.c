// SPDX-License-Identifier: GPL-2.0
#include "control.h"

static int open_one(int64_t i)
{
	(void)i;
	return open_control(TABLE);
}

KIND(control_table, "controls", "descriptor of the test device: a table that doubles", .shape = ON_ONE,
     .limit = "nofile", .open = open_one);
