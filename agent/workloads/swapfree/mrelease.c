// SPDX-License-Identifier: GPL-2.0
#include "mrelease.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_PROCESSES 256

static int pidfds[MAX_PROCESSES];
static int count;

int mrelease_open(struct trial *t, pid_t pid)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return wl_fail(t, "cannot open a pidfd: %m");
	pidfds[count++] = fd;
	return 0;
}

static int release_all(struct trial *t)
{
	for (int i = 0; i < count; i++) {
		int64_t start = now_ns();

		/*
		 * ESRCH: the process has freed its memory itself. EAGAIN: a part is being freed
		 * by its exit at this moment.
		 */
		if (syscall(SYS_process_mrelease, pidfds[i], 0) && errno != ESRCH &&
		    errno != EAGAIN)
			return wl_fail(t, "process_mrelease: %m");
		wl_sample(t, "mrelease_ns", now_ns() - start);
	}
	return 0;
}

int mrelease_kill(struct trial *t, pid_t group)
{
	const struct sched_param first = {.sched_priority = 1}, none = {0};
	int failed;

	if (sched_setscheduler(0, SCHED_FIFO, &first))
		return wl_fail(t, "cannot become a real-time task: %m");
	failed = kill(-group, SIGKILL) ? wl_fail(t, "cannot send the signal: %m") : release_all(t);
	sched_setscheduler(0, SCHED_OTHER, &none);
	return failed;
}

void mrelease_close(void)
{
	while (count)
		close(pidfds[--count]);
}
