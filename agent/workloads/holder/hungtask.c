// SPDX-License-Identifier: GPL-2.0
#include "hungtask.h"

#include <stdlib.h>
#include <string.h>

#define TIMEOUT "/proc/sys/kernel/hung_task_timeout_secs"
#define WARNINGS "/proc/sys/kernel/hung_task_warnings"

static char timeout[32], warnings[32]; /* the values before; empty if they were not changed */

bool hungtask_after(int64_t seconds)
{
	timeout[0] = warnings[0] = '\0';
	if (read_file(TIMEOUT, timeout, sizeof(timeout)) <= 0)
		return false;
	read_file(WARNINGS, warnings, sizeof(warnings));
	write_file(WARNINGS, "-1");
	return !write_file(TIMEOUT, "%lld", (long long)seconds);
}

void hungtask_restore(void)
{
	if (timeout[0])
		write_file(TIMEOUT, "%s", timeout);
	if (warnings[0])
		write_file(WARNINGS, "%s", warnings);
}

bool hungtask_report(const char *text)
{
	return strstr(text, "INFO: task ") && strstr(text, " blocked for more than ");
}
