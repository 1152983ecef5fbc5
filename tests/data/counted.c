// SPDX-License-Identifier: GPL-2.0
/* A stretch of known length: so many turns of a loop, and so many milliseconds of sleep. */
#include "workload.h"

/* A kernel of a distribution still tests its ciphers when the first trial begins. */
#define QUIET_MS 20000
#define SETTLE_MS 20

static int setup(struct trial *t)
{
	(void)t;
	sleep_ms(QUIET_MS);
	return 0;
}

static int run(struct trial *t)
{
	int64_t turns = wl_param_int(t, "turns"), ms = wl_param_int(t, "sleep_ms");
	int64_t start, work_ns;
	volatile int64_t i;

	wl_settle(t, SETTLE_MS);
	wl_profile_begin(t);
	start = now_ns();
	for (i = 0; i < turns; i++)
		;
	if (ms)
		sleep_ms(ms);
	work_ns = now_ns() - start;
	wl_profile_end(t);
	wl_sample(t, "work_ns", work_ns);
	return 0;
}

static const char *const params[] = {"turns", "sleep_ms", NULL};
static const struct workload counted = {
	.name = "counted",
	.summary = "a loop and a sleep of known length",
	.params = params,
	.stretch = "the loop and the sleep",
	.setup = setup,
	.run = run,
};
WORKLOAD(counted);
