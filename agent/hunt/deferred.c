// SPDX-License-Identifier: GPL-2.0
#include "hunt/deferred.h"

#include <stdio.h>
#include <unistd.h>

/* An interrupt that is shorter than this looks like the loop itself. */
#define NOTICED_NS 1000
/* The tick of the timer with what it does itself is shorter than this. */
#define TICK_WORK_NS 15000
#define QUIET_NS 40000000

struct taken take_until_quiet(int64_t begin, int64_t limit_ns)
{
	int64_t before = begin, worked = begin, now = begin;
	struct taken t = {0};

	while (now - worked < QUIET_NS && now - begin < limit_ns) {
		now = now_ns();
		if (now - before > NOTICED_NS)
			t.ns += now - before;
		if (now - before > TICK_WORK_NS) {
			worked = now;
			t.worked = true;
		}
		before = now;
	}
	t.in_ns = now - begin;
	t.worked_ns = worked - begin;
	t.quiet = now - worked >= QUIET_NS;
	return t;
}

int64_t taken_beyond(const struct taken *quiet, const struct taken *later)
{
	/* Only the ticks of a quiet CPU: what is left after the last work. */
	double rate = quiet->in_ns ? (double)quiet->ns / quiet->in_ns : 0;
	int64_t beyond = later->ns - (int64_t)(rate * later->in_ns);

	return beyond > 0 ? beyond : 0;
}

/* The clock without the time that tasks had the CPUs, until each was last switched from one. */
static int64_t idle_without_tasks(void)
{
	FILE *f = fopen("/proc/schedstat", "re");
	int64_t now = now_ns(), idle = -1;
	long long ran;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "cpu%*d %*u %*u %*u %*u %*u %*u %lld", &ran) == 1)
			idle = (idle < 0 ? 0 : idle) + now - ran;
	if (f)
		fclose(f);
	return idle;
}

static int64_t idle_to_10ms(void)
{
	FILE *f = fopen("/proc/uptime", "re");
	long long s = 0, hundredths = 0;
	int found = f ? fscanf(f, "%*s %lld.%lld", &s, &hundredths) : 0;

	if (f)
		fclose(f);
	return found == 2 ? s * 1000000000 + hundredths * 10000000 : -1;
}

static int64_t idle_of_timers(void)
{
	FILE *f = fopen("/proc/timer_list", "re");
	long long value, total = -1;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " .idle_sleeptime : %lld", &value) == 1)
			total = (total < 0 ? 0 : total) + value;
	if (f)
		fclose(f);
	return total;
}

enum idle_source idle_source(bool many_timers)
{
	if (!many_timers && idle_of_timers() >= 0)
		return IDLE_OF_TIMERS;
	return idle_without_tasks() == -1 ? IDLE_TO_10MS : IDLE_WITHOUT_TASKS;
}

int64_t idle_begin_ns(enum idle_source source)
{
	/* The stretch for which the caller has had the CPU counts when it leaves it. */
	if (source == IDLE_WITHOUT_TASKS)
		usleep(1);
	return idle_total_ns(source);
}

int64_t idle_total_ns(enum idle_source source)
{
	return source == IDLE_OF_TIMERS	      ? idle_of_timers()
	       : source == IDLE_WITHOUT_TASKS ? idle_without_tasks()
					      : idle_to_10ms();
}
