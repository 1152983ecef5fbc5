// SPDX-License-Identifier: GPL-2.0
#include "openloop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/start_barrier.h"

#define STACK_BYTES (64 << 10)
#define START_MS 30000

/* What the process and the agent share. */
struct state {
	struct start_barrier go;
	_Atomic int64_t from_ns; /* set before the threads start */
	_Atomic int64_t ready, next, done, failed;
	int64_t operations, every_ns;
	_Atomic int64_t done_ns[]; /* of each operation; 0: not done */
};

static struct state *state;
static size_t state_size;
static const struct openloop_work *work;
static pid_t process;

/* -- in the process -- */

static void wait_until(int64_t ns)
{
	struct timespec at = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static void *thread(void *number)
{
	int64_t n;

	state->ready++;
	start_barrier_wait(&state->go);
	while ((n = state->next++) < state->operations) {
		wait_until(state->from_ns + n * state->every_ns);
		if (!work->operate((intptr_t)number, n))
			state->failed++;
		state->done_ns[n] = now_ns();
		state->done++;
	}
	return NULL;
}

__attribute__((noreturn)) static void run_process(int64_t threads)
{
	pthread_attr_t attributes;
	pthread_t id;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Wake up exactly when an operation is due: timers are not coalesced with later ones. */
	prctl(PR_SET_TIMERSLACK, 1);
	if (work->prepare && !work->prepare())
		_exit(EXIT_FAILURE);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (int64_t i = 0; i < threads; i++)
		if (pthread_create(&id, &attributes, thread, (void *)(intptr_t)i))
			_exit(EXIT_FAILURE);
	for (;;)
		pause();
}

/* -- in the agent -- */

int openloop_start(struct trial *t, const struct openloop_work *w, int64_t threads,
		   int64_t operations, int64_t every_ns)
{
	int64_t end = now_ns() + START_MS * 1000000LL;

	work = w;
	state_size = sizeof(*state) + operations * sizeof(state->done_ns[0]);
	state = mmap(NULL, state_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (state == MAP_FAILED) {
		state = NULL;
		return wl_fail(t, "cannot mmap memory for %lld operations: %m",
			       (long long)operations);
	}
	state->operations = operations;
	state->every_ns = every_ns;
	process = fork();
	if (process == 0)
		run_process(threads);
	if (process < 0)
		return wl_fail(t, "cannot fork: %m");
	while (state->ready < threads) {
		if (openloop_done() < 0 || now_ns() > end)
			return wl_fail(t, "%lld of %lld threads that need the lock started",
				       (long long)state->ready, (long long)threads);
		sleep_ms(1);
	}
	return 0;
}

int openloop_pid(void)
{
	return process;
}

void openloop_go(int64_t from_ns)
{
	state->from_ns = from_ns;
	start_barrier_open(&state->go);
}

int64_t openloop_done(void)
{
	if (process > 0 && waitpid(process, NULL, WNOHANG) != process)
		return state->done;
	process = 0;
	return -1;
}

int64_t openloop_failed(void)
{
	return state->failed;
}

int64_t openloop_times(struct operation *operations, int64_t until_ns)
{
	int64_t missing = 0;

	for (int64_t n = 0; n < state->operations; n++) {
		int64_t done_ns = state->done_ns[n];

		operations[n].from_ns = state->from_ns + n * state->every_ns;
		operations[n].to_ns = done_ns ? done_ns : until_ns;
		missing += !done_ns;
	}
	return missing;
}

void openloop_kill(void)
{
	if (process > 0)
		kill(process, SIGKILL);
	process = 0;
}

void openloop_drop(void)
{
	openloop_kill();
	if (state)
		munmap(state, state_size);
	state = NULL;
}
