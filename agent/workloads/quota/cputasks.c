// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* memfd_create() */
#include "cputasks.h"

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
#include "lib/gate.h"

#define STACK_BYTES (64 << 10)
#define START_MS 60000
#define LOOKS 2
#define LOOK_MS 10000
/* A read of so much takes a tenth of a millisecond and more. */
#define READ_BYTES (256 << 10)

/* What the process and the agent share. */
struct shared {
	_Atomic int64_t ready;
	struct gate go;
	_Atomic int64_t from_ns; /* set before they go */
	struct gate look[LOOKS];
	_Atomic int looks; /* that are done; -1: none is to be had */
	int64_t least_ns, all_ns; /* of the last one */
};

static struct shared *shared;
static struct cputasks spec;
static pid_t process;
static int looks;
static int file;
static char *buffers; /* one that all share: nobody looks at what was read */

/* -- the process -- */

static int64_t used_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void burst_on(void)
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
	gate_wait(&shared->go);
	if (spec.work == CPUTASKS_BURST)
		burst_on();
	while (spec.work == CPUTASKS_SYSCALL)
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

static void look(const pthread_t *ids, int64_t *before_ns)
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
	shared->looks++;
}

/* The quota is one for tasks of the fair class: a real-time one is there when it is called. */
static void look_when_asked(const pthread_t *ids)
{
	struct sched_param realtime = {.sched_priority = 1};
	int64_t *before_ns = calloc(spec.tasks, sizeof(*before_ns));

	if (!before_ns || sched_setscheduler(0, SCHED_FIFO, &realtime)) {
		shared->looks = -1;
		return;
	}
	for (int i = 0; i < LOOKS; i++) {
		gate_wait(&shared->look[i]);
		look(ids, before_ns);
	}
}

__attribute__((noreturn)) static void be_process(const char *cgroup)
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
	look_when_asked(ids);
	for (;;)
		pause();
}

/* -- the agent -- */

int cputasks_start(struct trial *t, const char *cgroup, const struct cputasks *wanted)
{
	int64_t end = now_ns() + START_MS * 1000000LL;

	spec = *wanted;
	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		shared = NULL;
		return wl_fail(t, "memory: %m");
	}
	memset(shared, 0, sizeof(*shared));
	looks = 0;
	process = fork();
	if (process == 0)
		be_process(cgroup);
	if (process < 0)
		return wl_fail(t, "fork: %m");
	while (shared->ready < spec.tasks) {
		if (now_ns() > end || waitpid(process, NULL, WNOHANG) == process)
			return wl_fail(t, "%lld of %lld tasks started", (long long)shared->ready,
				       (long long)spec.tasks);
		sleep_ms(1);
	}
	return 0;
}

int64_t cputasks_go(void)
{
	shared->from_ns = now_ns();
	gate_open(&shared->go);
	return shared->from_ns;
}

bool cputasks_look(int64_t *least_ns, int64_t *all_ns)
{
	int64_t end = now_ns() + LOOK_MS * 1000000LL;

	if (looks == LOOKS)
		return false;
	gate_open(&shared->look[looks++]);
	while (shared->looks != looks) {
		if (shared->looks < 0 || now_ns() > end)
			return false;
		sleep_ms(1);
	}
	*least_ns = shared->least_ns;
	*all_ns = shared->all_ns;
	return true;
}

void cputasks_kill(void)
{
	if (process > 0)
		kill(process, SIGKILL);
	process = 0;
}
