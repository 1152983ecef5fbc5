// SPDX-License-Identifier: GPL-2.0
#include "control.h"

static int open_one(int64_t i)
{
	(void)i;
	return open_control(SLEEP);
}

KIND(control_sleeps, "controls", "descriptor of the test device: its release waits for a grace period", .shape = ON_ONE,
     .limit = "nofile", .open = open_one);
