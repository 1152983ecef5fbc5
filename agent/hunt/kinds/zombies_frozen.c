// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/crowd.h"

/* The freeze is what is measured: the freezer visits zombies too. */
static void make(void)
{
	pid_t *pids = array(sizeof(*pids));

	MUST(put_file("/sys/power/pm_test", "freezer") ? -1 : 0);
	MUST(put_file("/sys/module/suspend/parameters/pm_test_delay", "0") ? -1 : 0);
	put_file("/sys/power/sync_on_suspend", "0");
	put_file("/sys/power/mem_sleep", "s2idle");
	crowd_make(pids, CROWD_SAME_GROUP, NULL, NULL);
	crowd_zombies(pids);
}

static void release(void)
{
	MUST(put_file("/sys/power/state", "mem") ? -1 : 0);
}

KIND(zombies_frozen, "processes", "zombie beside a suspend that turns back after the freezer",
     .shape = OF_ONE, .limit = "nproc", .needs = "CONFIG_PM_DEBUG", .privileged = true,
     .call = "a write to /sys/power/state", .make = make, .release = release);
