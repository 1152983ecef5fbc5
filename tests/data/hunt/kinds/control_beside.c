// SPDX-License-Identifier: GPL-2.0
#include "control.h"

static int open_one(int64_t i)
{
	(void)i;
	return open_control(BESIDE);
}

KIND(control_beside, "controls", "descriptor of the test device: others stay, which its release does not look at", .shape = ON_ONE,
     .limit = "nofile", .open = open_one,
     .resident = "descriptor of the test device that stays", .stay = stay_open);
