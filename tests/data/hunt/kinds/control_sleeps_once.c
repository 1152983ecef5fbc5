// SPDX-License-Identifier: GPL-2.0
#include "control.h"

static int open_one(int64_t i)
{
	(void)i;
	return open_control(SLEEP_ONCE);
}

KIND(control_sleeps_once, "controls", "descriptor of the test device: the last release waits for a grace period", .shape = ON_ONE,
     .limit = "nofile", .open = open_one);
