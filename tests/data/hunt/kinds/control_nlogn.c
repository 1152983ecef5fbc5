// SPDX-License-Identifier: GPL-2.0
#include "control.h"

static int open_one(int64_t i)
{
	(void)i;
	return open_control(NLOGN);
}

KIND(control_nlogn, "controls", "descriptor of the test device: the logarithm of the number for each", .shape = ON_ONE,
     .limit = "nofile", .open = open_one);
