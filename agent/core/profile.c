// SPDX-License-Identifier: GPL-2.0
/*
 * Where the time of a stretch goes. The CPUs are sampled while the stretch runs; symbols
 * are looked up and stacks are counted afterwards. Each stack is one record.
 */
#include <string.h>

#include "agent.h"
#include "lib/stacks.h"

static struct sampler sampler;
static struct symbols symbols;
static bool sampled, running;

int profile_begin(int64_t period_ns, int64_t lead_ns)
{
	int error;

	if (sampled)
		return 0;
	error = sampler_open(&sampler, period_ns);
	if (error)
		return error;
	sampled = running = true;
	sampler_start(&sampler, lead_ns);
	return 0;
}

void profile_stop(void)
{
	if (running)
		sampler_stop(&sampler);
	running = false;
}

static int count(struct stacks *stacks, struct profile *p)
{
	static struct cpu_sample sample;
	int status;

	while ((status = sampler_next(&sampler, &sample)) > 0) {
		status = stacks_add(stacks, &symbols, &sample, sampler.period_ns);
		if (status)
			return status;
		p->samples++;
	}
	return status;
}

static void send_stack(void *to, const char *text, int64_t samples, int64_t ns)
{
	record_stack(to, text, samples, ns);
}

int profile_report(struct profile *p)
{
	struct stacks stacks = {0};
	int error;

	if (!sampled)
		return 0;
	profile_stop();
	sampled = false;
	p->period_ns = sampler.period_ns;
	p->stretch_ns = sampler.to_ns - sampler.from_ns;
	p->cpus = sampler.nr;
	p->lost = sampler_lost(&sampler);
	p->samples = 0;
	/* Modules are loaded before the first trial, and no later event adds functions. */
	error = symbols.nr ? 0 : symbols_load(&symbols);
	if (!error)
		error = count(&stacks, p);
	sampler_close(&sampler);
	if (!error) {
		record_profile(p);
		error = stacks_report(&stacks, &symbols, send_stack, p);
	}
	stacks_free(&stacks);
	return error;
}
