// SPDX-License-Identifier: GPL-2.0
/* The smallest PID 1: powers off at once. bench/boot_time.py compares the agent with it. */
#include <sys/reboot.h>
#include <unistd.h>

int main(void)
{
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}
