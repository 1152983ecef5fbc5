// SPDX-License-Identifier: GPL-2.0
#include "control.h"

static int open_one(int64_t i)
{
	(void)i;
	return open_control(THRESHOLD);
}

KIND(control_threshold, "controls", "descriptor of the test device: what is beyond 700 for each", .shape = ON_ONE,
     .limit = "nofile", .open = open_one);
