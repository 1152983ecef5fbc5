// SPDX-License-Identifier: GPL-2.0
#include "control.h"

static int open_one(int64_t i)
{
	(void)i;
	return open_control(LINEAR);
}

KIND(control_linear, "controls", "descriptor of the test device: the same for each", .shape = ON_ONE,
     .limit = "nofile", .open = open_one);
