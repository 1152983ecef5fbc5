// SPDX-License-Identifier: GPL-2.0
#include "hunt/deferred.h"

#include <stdio.h>

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

static int64_t idle_total_10ms(void)
{
	FILE *f = fopen("/proc/uptime", "re");
	long long s = 0, hundredths = 0;
	int found = f ? fscanf(f, "%*s %lld.%lld", &s, &hundredths) : 0;

	if (f)
		fclose(f);
	return found == 2 ? s * 1000000000 + hundredths * 10000000 : -1;
}

int64_t idle_total_ns(bool many_timers)
{
	FILE *f = many_timers ? NULL : fopen("/proc/timer_list", "re");
	long long value, total = -1;
	char line[256];

	if (many_timers)
		return idle_total_10ms();
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " .idle_sleeptime : %lld", &value) == 1)
			total = (total < 0 ? 0 : total) + value;
	if (f)
		fclose(f);
	return total;
}
