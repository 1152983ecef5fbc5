// SPDX-License-Identifier: GPL-2.0
#include "hunt/bystanders.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/sampler.h"

#define PROBE_NS 1000000
/* A sample costs some thousand instructions. */
#define TIMER_NS 100000

enum { ORDINARY, REALTIME, NR_PROBES };

static struct {
	_Atomic int64_t from_ns, worst_ns[NR_PROBES];
} * shared;
static pid_t probes[NR_PROBES];
static struct sampler timer;
/* Opened once: its buffer is large, and takes long to clear. */
static int64_t lost_before;
static enum { NOT_OPENED, OPENED, IMPOSSIBLE } timer_state;

static void probe(int which)
{
	int64_t due = now_ns();

	if (which == REALTIME &&
	    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 50}))
		_exit(1);
	for (;;) {
		int64_t now, begun;

		due += PROBE_NS;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
				&(struct timespec){due / 1000000000, due % 1000000000}, NULL);
		now = now_ns();
		begun = shared->from_ns;
		/* Only what it waited since the release began. */
		if (begun && now > begun) {
			int64_t late = now - (due > begun ? due : begun);

			if (late > shared->worst_ns[which])
				shared->worst_ns[which] = late;
		}
		if (now - due > PROBE_NS)
			due = now;
	}
}

bool bystanders_open(void)
{
	if (timer_state != NOT_OPENED)
		return false;
	timer_state = sampler_open(&timer, TIMER_NS) ? IMPOSSIBLE : OPENED;
	return timer_state == OPENED;
}

int bystanders_start(struct trial *t)
{
	int which;

	if (!shared)
		shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	shared->from_ns = 0;
	for (which = 0; which < NR_PROBES; which++) {
		shared->worst_ns[which] = 0;
		probes[which] = fork();
		if (!probes[which])
			probe(which);
		if (probes[which] < 0)
			return wl_fail(t, "fork of a probe: %m");
	}
	if (timer_state == OPENED) {
		lost_before = sampler_lost(&timer);
		sampler_start(&timer, 0);
	}
	return 0;
}

void bystanders_from(void)
{
	shared->from_ns = now_ns();
}

static int64_t latest_timer(int64_t from_ns)
{
	int64_t longest = -1;
	struct cpu_sample sample;
	int got, i;

	sampler_stop(&timer);
	timer.from_ns = from_ns;
	for (i = 0; i < timer.nr; i++)
		timer.cpus[i].last_ns = from_ns;
	while ((got = sampler_next(&timer, &sample)) > 0)
		if (sample.ns - timer.period_ns > longest)
			longest = sample.ns - timer.period_ns;
	if (got < 0 || sampler_lost(&timer) > lost_before)
		longest = -1;
	else if (longest < 0)
		longest = 0;
	return longest;
}

void bystanders_stop(struct lateness *l)
{
	int which;

	/* Those that are late run now. */
	sleep_ms(3);
	l->irqs_off_ns = timer_state == OPENED ? latest_timer(shared->from_ns) : -1;
	l->probe_ns = shared->worst_ns[ORDINARY];
	l->realtime_ns = shared->worst_ns[REALTIME];
	for (which = 0; which < NR_PROBES; which++) {
		kill(probes[which], SIGKILL);
		waitpid(probes[which], NULL, 0);
	}
}
