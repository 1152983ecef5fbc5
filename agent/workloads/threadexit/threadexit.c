// SPDX-License-Identifier: GPL-2.0
/* The end of one process with many threads: it exits by itself, or it is killed. */
#define _GNU_SOURCE /* pipe2() */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workload.h"

#define SETTLE_MS 20
#define STACK_BYTES (64 << 10)

static pid_t process;

static void *sleep_forever(void *unused)
{
	for (;;)
		pause();
	return unused;
}

/* In the child: makes the threads, writes a byte when they exist, and exits when it reads one. */
__attribute__((noreturn)) static void run_threads(int64_t threads, int ready, int order)
{
	pthread_attr_t attributes;
	pthread_t thread;
	char byte = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	while (threads--)
		if (pthread_create(&thread, &attributes, sleep_forever, NULL))
			_exit(EXIT_FAILURE);
	if (write_all(ready, &byte, 1) || read_all(order, &byte, 1))
		_exit(EXIT_FAILURE);
	_exit(EXIT_SUCCESS);
}

/* Closes the process's ends of both pipes; our ends stay open. */
static int start(struct trial *t, int *ready, int *order)
{
	int to_us[2], from_us[2];
	char byte;

	if (pipe2(to_us, O_CLOEXEC) || pipe2(from_us, O_CLOEXEC))
		return wl_fail(t, "cannot make a pipe: %m");
	process = fork();
	if (process == 0) {
		close(to_us[0]);
		close(from_us[1]);
		run_threads(wl_param_int(t, "threads"), to_us[1], from_us[0]);
	}
	close(to_us[1]);
	close(from_us[0]);
	*ready = to_us[0];
	*order = from_us[1];
	if (process < 0)
		return wl_fail(t, "cannot fork: %m");
	if (read_all(*ready, &byte, 1))
		return wl_fail(t, "%lld threads could not be made",
			       (long long)wl_param_int(t, "threads"));
	return 0;
}

static int end(struct trial *t, int order, int64_t *took_ns)
{
	bool kills = !strcmp(wl_param_str(t, "how"), "kill");
	int64_t start_ns;
	int status;

	wl_settle(t, SETTLE_MS);
	start_ns = now_ns();
	if (kills ? kill(process, SIGKILL) : write_all(order, "", 1))
		return wl_fail(t, "cannot send the order to exit: %m");
	if (waitpid(process, &status, 0) != process)
		return wl_fail(t, "cannot wait for the process: %m");
	process = 0;
	*took_ns += now_ns() - start_ns;
	wl_check(t, "ended_so", kills ? WIFSIGNALED(status) : status == 0, "wait status %#x",
		 (unsigned)status);
	return 0;
}

static int one_round(struct trial *t, int64_t *took_ns)
{
	int ready = -1, order = -1, error;

	error = start(t, &ready, &order);
	if (!error)
		error = end(t, order, took_ns);
	close(ready);
	close(order);
	return error;
}

/*
 * The order in which two CPUs run the exiting threads changes a round by 3%: the mean of
 * several rounds changes less.
 */
static int run(struct trial *t)
{
	int64_t rounds = wl_param_int(t, "rounds"), took_ns = 0;

	for (int64_t i = 0; i < rounds; i++)
		if (one_round(t, &took_ns))
			return -1;
	wl_sample(t, "threadexit_ns", took_ns / rounds);
	return 0;
}

static void cleanup(struct trial *t)
{
	(void)t;
	if (process > 0)
		kill_and_reap_all(process);
	process = 0;
}

static const char *const params[] = {"threads", "how", "rounds", NULL};
static const struct workload threadexit = {
	.name = "threadexit",
	.summary = "the end of one process with many threads",
	.params = params,
	.run = run,
	.cleanup = cleanup,
};
WORKLOAD(threadexit);
