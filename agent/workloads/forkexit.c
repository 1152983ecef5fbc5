// SPDX-License-Identifier: GPL-2.0
/* Fork, exit, wait, and again: what every process pays for its end, where nobody was killed. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/crew.h"

static bool fork_and_wait(int64_t count)
{
	while (count--) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(EXIT_SUCCESS);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return false;
	}
	return true;
}

static int run(struct trial *t)
{
	int64_t total = wl_param_int(t, "children"), elapsed_ns;

	if (crew_run(t, wl_param_int(t, "parallel"), total, fork_and_wait, &elapsed_ns))
		return -1;
	wl_sample(t, "forkexit_ns", elapsed_ns / total);
	return 0;
}

static const char *const params[] = {"children", "parallel", NULL};
static const struct workload forkexit = {
	.name = "forkexit",
	.summary = "fork, exit and wait, over and over",
	.params = params,
	.run = run,
};
WORKLOAD(forkexit);
