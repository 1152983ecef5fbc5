// SPDX-License-Identifier: GPL-2.0
#include "control.h"

static int open_one(int64_t i)
{
	(void)i;
	return open_control(WALK);
}

KIND(control_walks, "controls", "descriptor of the test device: its release walks the descriptors that stay", .shape = ON_ONE,
     .limit = "nofile", .open = open_one,
     .resident = "descriptor of the test device that stays", .stay = stay_open);
