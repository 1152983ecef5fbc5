// SPDX-License-Identifier: GPL-2.0
/* Fork, exit, wait, and again: what every process pays for its exit if nothing is killed. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/applet.h"
#include "lib/parallel.h"

/*
 * The addresses of a process's memory decide how many page tables a fork copies: 2% of its
 * cost, and random for each execution. Therefore a parent is executed anew, with fixed
 * addresses.
 */
static bool fork_and_wait(int64_t count)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)count);
	if (personality(ADDR_NO_RANDOMIZE) < 0)
		return false;
	execl("/proc/self/exe", "forkexit_parent", text, NULL);
	return false;
}

static int parent(int argc, char **argv)
{
	for (long long left = argc == 2 ? atoll(argv[1]) : 0; left > 0; left--) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(EXIT_SUCCESS);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}
APPLET(forkexit_parent, parent);

static int run(struct trial *t)
{
	int64_t total = wl_param_int(t, "children"), elapsed_ns;

	if (parallel_run(t, wl_param_int(t, "parallel"), total, fork_and_wait, &elapsed_ns))
		return -1;
	wl_sample(t, "forkexit_ns", elapsed_ns / total);
	return 0;
}

static const char *const params[] = {"children", "parallel", NULL};
static const struct workload forkexit = {
	.name = "forkexit",
	.summary = "fork, exit and wait, again and again",
	.params = params,
	.run = run,
};
WORKLOAD(forkexit);
