// SPDX-License-Identifier: GPL-2.0
/* The least that a PID 1 can do: power off at once. What bench/boot_time.py compares with. */
#include <sys/reboot.h>
#include <unistd.h>

int main(void)
{
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}
