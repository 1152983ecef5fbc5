// SPDX-License-Identifier: GPL-2.0
#include "irqs_off.h"

#include <string.h>

#include "lib/sampler.h"

static struct sampler sampler;
static bool opened;

int irqs_off_begin(struct trial *t, int64_t period_ns)
{
	int error = sampler_open(&sampler, period_ns);

	if (error)
		return wl_fail(t,
			       "cannot run a timer on each CPU: %s; the kernel needs PERF_EVENTS",
			       strerror(-error));
	opened = true;
	sampler_start(&sampler, 0);
	return 0;
}

int irqs_off_end(struct trial *t, int64_t *longest_ns)
{
	struct cpu_sample sample;
	int64_t lost, samples = 0;
	int got;

	sampler_stop(&sampler);
	*longest_ns = 0;
	while ((got = sampler_next(&sampler, &sample)) > 0) {
		samples++;
		if (sample.ns - sampler.period_ns > *longest_ns)
			*longest_ns = sample.ns - sampler.period_ns;
	}
	lost = sampler_lost(&sampler);
	irqs_off_drop();
	if (got < 0 || lost || !samples)
		return wl_fail(t,
			       "%lld samples of the timer were read and %lld were lost; give the "
			       "guest more memory",
			       (long long)samples, (long long)lost);
	return 0;
}

void irqs_off_drop(void)
{
	if (opened)
		sampler_close(&sampler);
	opened = false;
}
