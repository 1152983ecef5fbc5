// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* memfd_create() */
#include "cpu_load.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/cgroup.h"
#include "lib/start_barrier.h"

#define STACK_BYTES (64 << 10)
#define START_MS 60000
#define READINGS 2
#define READ_MS 10000
/* Reading this much takes a tenth of a millisecond or more. */
#define READ_BYTES (256 << 10)

/* What the process and the agent share. */
struct shared {
	_Atomic int64_t ready;
	struct start_barrier go;
	_Atomic int64_t from_ns; /* set before the threads start */
	struct start_barrier read_usage[READINGS];
	/* Readings that are done; -1: the thread could not become a real-time task. */
	_Atomic int readings;
	int64_t least_ns, all_ns; /* of the last reading */
};

static struct shared *shared;
static struct cpu_load spec;
static pid_t process;
static int readings;
static int file;
static char *buffers; /* one buffer for all tasks: the data are not used */

/* -- in the process -- */

static int64_t used_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void burst_forever(void)
{
	int64_t each_ns = spec.burst_ns / spec.tasks, wanted_ns = used_ns(CLOCK_THREAD_CPUTIME_ID),
		next_ns = shared->from_ns;

	for (;;) {
		int64_t left_ns;

		wanted_ns += each_ns;
		while (used_ns(CLOCK_THREAD_CPUTIME_ID) < wanted_ns)
			;
		next_ns += spec.cycle_ns;
		left_ns = next_ns - now_ns();
		if (left_ns > 0)
			sleep_ns(left_ns);
	}
}

static void *task(void *unused)
{
	shared->ready++;
	start_barrier_wait(&shared->go);
	if (spec.work == CPU_LOAD_BURST)
		burst_forever();
	while (spec.work == CPU_LOAD_SYSCALL)
		if (pread(file, buffers, READ_BYTES, 0) != READ_BYTES)
			_exit(EXIT_FAILURE);
	for (;;)
		;
	return unused;
}

static bool have_file(void)
{
	buffers = malloc(READ_BYTES);
	file = memfd_create("read", MFD_CLOEXEC);
	return buffers && file >= 0 && !ftruncate(file, READ_BYTES);
}

static void read_usage(const pthread_t *ids, int64_t *before_ns)
{
	int64_t least_ns = INT64_MAX, all_ns = 0;

	for (int64_t i = 0; i < spec.tasks; i++) {
		clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
		int64_t now, since_ns;

		pthread_getcpuclockid(ids[i], &clock);
		now = used_ns(clock);
		since_ns = now - before_ns[i];
		before_ns[i] = now;
		least_ns = since_ns < least_ns ? since_ns : least_ns;
		all_ns += since_ns;
	}
	shared->least_ns = least_ns;
	shared->all_ns = all_ns;
	shared->readings++;
}

/* The quota limits tasks of the fair class; this real-time thread runs when it is asked to. */
static void read_when_asked(const pthread_t *ids)
{
	struct sched_param realtime = {.sched_priority = 1};
	int64_t *before_ns = calloc(spec.tasks, sizeof(*before_ns));

	if (!before_ns || sched_setscheduler(0, SCHED_FIFO, &realtime)) {
		shared->readings = -1;
		return;
	}
	for (int i = 0; i < READINGS; i++) {
		start_barrier_wait(&shared->read_usage[i]);
		read_usage(ids, before_ns);
	}
}

__attribute__((noreturn)) static void run_process(const char *cgroup)
{
	pthread_t *ids = calloc(spec.tasks, sizeof(*ids));
	pthread_attr_t attributes;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!ids || !have_file() || (spec.cpu >= 0 && stay_on_cpu(spec.cpu)) ||
	    cgroup_enter(cgroup))
		_exit(EXIT_FAILURE);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (int64_t i = 0; i < spec.tasks; i++)
		if (pthread_create(&ids[i], &attributes, task, NULL))
			_exit(EXIT_FAILURE);
	read_when_asked(ids);
	for (;;)
		pause();
}

/* -- in the agent -- */

int cpu_load_start(struct trial *t, const char *cgroup, const struct cpu_load *wanted)
{
	int64_t end = now_ns() + START_MS * 1000000LL;

	spec = *wanted;
	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		shared = NULL;
		return wl_fail(t, "not enough memory: %m");
	}
	memset(shared, 0, sizeof(*shared));
	readings = 0;
	process = fork();
	if (process == 0)
		run_process(cgroup);
	if (process < 0)
		return wl_fail(t, "cannot fork: %m");
	while (shared->ready < spec.tasks) {
		if (now_ns() > end || waitpid(process, NULL, WNOHANG) == process)
			return wl_fail(t, "%lld of %lld tasks started", (long long)shared->ready,
				       (long long)spec.tasks);
		sleep_ms(1);
	}
	return 0;
}

int64_t cpu_load_go(void)
{
	shared->from_ns = now_ns();
	start_barrier_open(&shared->go);
	return shared->from_ns;
}

bool cpu_load_usage(int64_t *least_ns, int64_t *all_ns)
{
	int64_t end = now_ns() + READ_MS * 1000000LL;

	if (readings == READINGS)
		return false;
	start_barrier_open(&shared->read_usage[readings++]);
	while (shared->readings != readings) {
		if (shared->readings < 0 || now_ns() > end)
			return false;
		sleep_ms(1);
	}
	*least_ns = shared->least_ns;
	*all_ns = shared->all_ns;
	return true;
}

void cpu_load_kill(void)
{
	if (process > 0)
		kill(process, SIGKILL);
	process = 0;
}
