// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* close_range() */
#include "compactor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Shared with the process. */
struct state {
	_Atomic bool stop;
	_Atomic int64_t rounds;
};

static struct state *state;
static pid_t compactor;

__attribute__((noreturn)) static void compact(const char *file, int cpu)
{
	int fd;

	/* Otherwise a process that waits for the end of a pipe would wait for this one, too. */
	close_range(STDERR_FILENO + 1, ~0U, 0);
	fd = open(file, O_WRONLY | O_CLOEXEC);
	stay_on_cpu(cpu);
	while (!state->stop && pwrite(fd, "1", 1, 0) == 1)
		state->rounds++;
	_exit(state->stop ? EXIT_SUCCESS : errno);
}

int compactor_start(struct trial *t, const char *file, int cpu)
{
	int status;

	state = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (state == MAP_FAILED) {
		state = NULL;
		return wl_fail(t, "cannot mmap memory: %m");
	}
	compactor = fork();
	if (compactor < 0)
		return wl_fail(t, "cannot fork the compactor: %m");
	if (!compactor)
		compact(file, cpu);
	while (!state->rounds) {
		if (waitpid(compactor, &status, WNOHANG)) {
			compactor = 0;
			return wl_fail(t, "cannot write to %s: %s", file,
				       strerror(WEXITSTATUS(status)));
		}
		sleep_ms(1);
	}
	return 0;
}

int64_t compactor_rounds(void)
{
	return state ? state->rounds : 0;
}

int compactor_stop(struct trial *t)
{
	int status = 0;

	if (compactor > 0) {
		state->stop = true;
		waitpid(compactor, &status, 0);
		compactor = 0;
	}
	compactor_drop();
	return status ? wl_fail(t, "the compactor stopped: %s", strerror(WEXITSTATUS(status))) : 0;
}

void compactor_drop(void)
{
	if (compactor > 0) {
		kill(compactor, SIGKILL);
		waitpid(compactor, NULL, 0);
	}
	compactor = 0;
	if (state)
		munmap(state, sizeof(*state));
	state = NULL;
}
