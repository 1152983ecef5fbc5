// SPDX-License-Identifier: GPL-2.0
/*
 * Like a build: many short-lived processes. A job forks and executes a compiler, which
 * touches some memory, writes a file, and forks and executes an assembler. The assembler
 * reads the file from a pipe and exits.
 */
#define _GNU_SOURCE /* pipe2() */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/applet.h"
#include "lib/parallel.h"

#define REGIONS 8
#define REGION_BYTES (64 << 10)
#define PAGE 4096
#define OUTPUT_BYTES (32 << 10)

static bool reap(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

static pid_t execute(const char *applet)
{
	pid_t pid = fork();

	if (pid == 0) {
		execl("/proc/self/exe", applet, NULL);
		_exit(EXIT_FAILURE);
	}
	return pid;
}

/* Separate regions, so that there is more than one to unmap. */
static bool use_memory(void)
{
	for (int i = 0; i < REGIONS; i++) {
		char *region = mmap(NULL, REGION_BYTES + PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (region == MAP_FAILED || mprotect(region + REGION_BYTES, PAGE, PROT_NONE))
			return false;
		for (int at = 0; at < REGION_BYTES; at += PAGE)
			region[at] = 1;
	}
	return true;
}

static int assemble(int argc, char **argv)
{
	static char input[OUTPUT_BYTES];

	(void)argc, (void)argv;
	return !use_memory() || read_all(STDIN_FILENO, input, sizeof(input)) ? EXIT_FAILURE
									     : EXIT_SUCCESS;
}
APPLET(shortlived_assembler, assemble);

/*
 * The assembler reads what the compiler writes, as with `cc -pipe`; the same data are
 * written to a file.
 */
static bool pipe_to_assembler(int file, const char *output)
{
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return false;
	dup2(ends[0], STDIN_FILENO);
	pid = execute("shortlived_assembler");
	close(ends[0]);
	if (write_all(file, output, OUTPUT_BYTES) || write_all(ends[1], output, OUTPUT_BYTES))
		return false;
	close(ends[1]);
	return reap(pid);
}

static int compile(int argc, char **argv)
{
	static char output[OUTPUT_BYTES];
	char path[64];
	int file;
	bool ok;

	(void)argc, (void)argv;
	snprintf(path, sizeof(path), "/tmp/shortlived-%d", (int)getpid());
	file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (file < 0 || !use_memory())
		return EXIT_FAILURE;
	memset(output, 'o', sizeof(output));
	ok = pipe_to_assembler(file, output);
	unlink(path);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
APPLET(shortlived_compiler, compile);

static bool jobs(int64_t count)
{
	while (count--)
		if (!reap(execute("shortlived_compiler")))
			return false;
	return true;
}

static int run(struct trial *t)
{
	int64_t total = wl_param_int(t, "jobs"), elapsed_ns;

	if (parallel_run(t, wl_param_int(t, "parallel"), total, jobs, &elapsed_ns))
		return -1;
	wl_sample(t, "job_ns", elapsed_ns / total);
	return 0;
}

static const char *const params[] = {"jobs", "parallel", NULL};
static const struct workload shortlived = {
	.name = "shortlived",
	.summary = "a build: many short-lived processes that execute a program, in pairs",
	.params = params,
	.run = run,
};
WORKLOAD(shortlived);
