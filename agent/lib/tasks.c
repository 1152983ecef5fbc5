// SPDX-License-Identifier: GPL-2.0
#include "tasks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

char task_state(pid_t tid)
{
	char path[64], text[512], *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
	if (read_file(path, text, sizeof(text)) <= 0)
		return 0;
	end = strrchr(text, ')'); /* the name of a task may contain any character */
	return end && end[1] ? end[2] : 0;
}

bool task_wait_state(pid_t tid, char state, int64_t limit_ms)
{
	int64_t end = now_ns() + limit_ms * 1000000;

	while (task_state(tid) != state) {
		if (now_ns() > end)
			return false;
		sleep_ms(1);
	}
	return true;
}

int task_reap(pid_t pid, int64_t limit_ms)
{
	int64_t end = now_ns() + limit_ms * 1000000;
	int status;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (now_ns() > end)
			return -1;
		sleep_ms(1);
	}
	return status;
}

bool group_reap(pid_t leader, int64_t limit_ms)
{
	int64_t end = now_ns() + limit_ms * 1000000;

	for (;;) {
		pid_t pid = waitpid(-leader, NULL, WNOHANG);

		if (pid < 0 && kill(-leader, 0) && errno == ESRCH)
			return true;
		if (pid <= 0 && now_ns() > end)
			return false;
		if (pid <= 0)
			sleep_ms(1);
	}
}
