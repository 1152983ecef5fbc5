// SPDX-License-Identifier: GPL-2.0
#include "control.h"

static int open_one(int64_t i)
{
	(void)i;
	return open_control(CALL);
}

KIND(control_calls, "controls", "descriptor of the test device: its release calls the other CPUs", .shape = ON_ONE,
     .limit = "nofile", .open = open_one);
