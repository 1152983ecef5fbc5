// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* pipe2() */
#include "parallel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SETTLE_MS 20

__attribute__((noreturn)) static void member(const int *ends, int64_t count, parallel_work *work)
{
	char byte;

	/* Nothing is ever written: the end of the pipe is the start signal. */
	close(ends[1]);
	_exit(read(ends[0], &byte, 1) == 0 && work(count) ? EXIT_SUCCESS : EXIT_FAILURE);
}

int parallel_run(struct trial *t, int64_t parallel, int64_t total, parallel_work *work,
		 int64_t *elapsed_ns)
{
	int64_t started = 0, failed = 0, start;
	int ends[2], status;

	if (pipe2(ends, O_CLOEXEC))
		return wl_fail(t, "cannot make a pipe: %m");
	for (; started < parallel; started++) {
		pid_t pid = fork();

		if (pid == 0)
			member(ends, total / parallel + (started < total % parallel), work);
		if (pid < 0)
			break;
	}
	close(ends[0]);
	wl_settle(t, SETTLE_MS);
	start = now_ns();
	close(ends[1]);
	for (int64_t i = 0; i < started; i++)
		if (wait(&status) < 0 || status)
			failed++;
	*elapsed_ns = now_ns() - start;
	if (started < parallel || failed)
		return wl_fail(t, "%lld of %lld processes started, %lld of them failed",
			       (long long)started, (long long)parallel, (long long)failed);
	return 0;
}
