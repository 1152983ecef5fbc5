// SPDX-License-Identifier: GPL-2.0
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/tasks.h"
#include "tests/test.h"

#define LIMIT_MS 10000

void test_tasks(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		for (;;)
			pause();
	CHECK(task_state(getpid()) == 'R');
	CHECK(task_wait_state(pid, 'S', LIMIT_MS));
	CHECK(!task_wait_state(pid, 'T', 1));
	CHECK(task_reap(pid, 1) == -1);
	kill(pid, SIGSTOP);
	CHECK(task_wait_state(pid, 'T', LIMIT_MS));
	kill(pid, SIGKILL);
	CHECK(task_wait_state(pid, 'Z', LIMIT_MS));
	status = task_reap(pid, LIMIT_MS);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	CHECK(task_state(pid) == 0);

	pid = fork();
	if (pid == 0)
		for (;;)
			pause();
	CHECK(!setpgid(pid, pid));
	CHECK(!group_reap(pid, 1));
	kill(-pid, SIGKILL);
	CHECK(group_reap(pid, LIMIT_MS));
	CHECK(task_state(pid) == 0);
}
