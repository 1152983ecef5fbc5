// SPDX-License-Identifier: GPL-2.0
#include "mrelease.h"

#include <errno.h>
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

int mrelease_all(struct trial *t)
{
	for (int i = 0; i < count; i++) {
		int64_t start = now_ns();

		/*
		 * A process may have run since it was killed, and have freed its memory (ESRCH).
		 * EAGAIN means that a part could not be freed, as its exit frees it right now.
		 */
		if (syscall(SYS_process_mrelease, pidfds[i], 0) && errno != ESRCH &&
		    errno != EAGAIN)
			return wl_fail(t, "process_mrelease: %s", strerror(errno));
		wl_sample(t, "mrelease_ns", now_ns() - start);
	}
	return 0;
}

void mrelease_close(void)
{
	while (count)
		close(pidfds[--count]);
}
