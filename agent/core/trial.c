// SPDX-License-Identifier: GPL-2.0
/* One trial: set up the workload, repeat it, clean up, and write its records. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"

/* The tick of HZ = 250; a multiple of the tick of HZ = 1000. */
#define TICK_NS 4000000
/* Spreads small numbers over 64 bits. */
#define PRIME 0x9e3779b97f4a7c15

struct trial {
	const struct trial_plan *plan;
	uint64_t seed;
	int repetition;
	bool failed, broken; /* failed: it could not run; broken: an invariant did not hold */
	/* Of the first failure, or otherwise of the first invariant that did not hold. */
	char detail[DETAIL_MAX];
};

const char *wl_param_str(const struct trial *t, const char *name)
{
	int i;

	for (i = 0; i < t->plan->nr_params; i++)
		if (!strcmp(t->plan->params[i].name, name))
			return t->plan->params[i].value;
	agent_error("workload %s reads the parameter %s, which it does not declare",
		    t->plan->workload->name, name);
}

int wl_param_choice(const struct trial *t, const char *name, const char *const *choices)
{
	const char *value = wl_param_str(t, name);
	int i;

	for (i = 0; choices[i]; i++)
		if (!strcmp(value, choices[i]))
			return i;
	agent_error("workload %s: parameter %s has no choice \"%s\"", t->plan->workload->name, name,
		    value);
}

int64_t wl_param_int(const struct trial *t, const char *name)
{
	const char *text = wl_param_str(t, name);
	int64_t value;
	char *end;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (end == text || *end || errno)
		agent_error("trial %d: parameter %s of %s: expected an integer, not \"%s\"",
			    t->plan->index, name, t->plan->workload->name, text);
	return value;
}

/* The start of this repetition's random numbers. */
static uint64_t random_state(const struct trial *t)
{
	uint64_t where = (uint64_t)t->plan->index << 32 | (uint32_t)t->repetition;

	return t->seed ^ where * PRIME;
}

void wl_settle(const struct trial *t, int64_t ms)
{
	struct prng p = {.state = random_state(t)};

	sleep_ns(ms * 1000000 + prng_below(&p, TICK_NS));
}

void wl_sample(struct trial *t, const char *metric, int64_t value)
{
	record_sample(t->plan->index, t->repetition, metric, value,
		      t->repetition < t->plan->warmup);
}

void wl_sample_ratio(struct trial *t, const char *metric, int64_t part, int64_t whole)
{
	record_ratio(t->plan->index, t->repetition, metric, (double)part / whole,
		     t->repetition < t->plan->warmup);
}

void wl_histogram(struct trial *t, const char *metric, const struct histogram *h)
{
	record_histogram(t->plan->index, t->repetition, metric, h, t->repetition < t->plan->warmup);
}

bool wl_check(struct trial *t, const char *name, bool ok, const char *detail, ...)
{
	char text[DETAIL_MAX];
	va_list args;

	va_start(args, detail);
	vsnprintf(text, sizeof(text), detail, args);
	va_end(args);
	record_check(t->plan->index, t->repetition, name, ok, text);
	if (!ok && !t->broken && !t->failed)
		snprintf(t->detail, sizeof(t->detail), "%s: %.400s", name, text);
	t->broken |= !ok;
	return ok;
}

void wl_alive(struct trial *t, const char *detail, ...)
{
	char text[DETAIL_MAX];
	va_list args;

	va_start(args, detail);
	vsnprintf(text, sizeof(text), detail, args);
	va_end(args);
	record_alive(t->plan->index, text);
}

int wl_fail(struct trial *t, const char *detail, ...)
{
	va_list args;

	if (!t->failed) {
		va_start(args, detail);
		vsnprintf(t->detail, sizeof(t->detail), detail, args);
		va_end(args);
	}
	t->failed = true;
	return -1;
}

/* Warm-ups are not profiled: they differ from measured repetitions. */
static bool profiled(const struct trial *t)
{
	return t->plan->profile_ns && t->repetition >= t->plan->warmup;
}

__attribute__((weak)) void counts_begin(struct trial *t)
{
	(void)t;
}

__attribute__((weak)) void counts_end(void)
{
}

__attribute__((weak)) void counts_report(void)
{
}

void wl_profile_begin(struct trial *t)
{
	struct prng p = {.state = random_state(t)};
	int64_t period_ns = t->plan->profile_ns;
	int error = 0;

	/* Another phase in every repetition, so that the samples hit other places. */
	if (profiled(t))
		error = profile_begin(period_ns, prng_below(&p, period_ns));
	if (error)
		wl_fail(t, "profile: %s; it needs Linux 6.0 or later with PERF_EVENTS and KALLSYMS",
			strerror(-error));
	if (t->plan->workload->stretch)
		counts_begin(t);
}

void wl_profile_end(struct trial *t)
{
	(void)t;
	counts_end();
	profile_stop();
}

static int run(struct trial *t)
{
	struct profile p = {.trial = t->plan->index, .repetition = t->repetition};
	bool whole = !t->plan->workload->stretch;
	int status, error;

	if (whole)
		wl_profile_begin(t);
	status = t->plan->workload->run(t);
	counts_report();
	error = profile_report(&p);
	if (error)
		return wl_fail(t, "profile: cannot look up what was sampled: %s", strerror(-error));
	return status;
}

static bool usable(const struct trial *t)
{
	return !t->failed && !t->broken;
}

/* A step may fail without a message; the trial must not count as successful. */
static void fail_on(struct trial *t, int status, const char *step)
{
	if (status)
		wl_fail(t, "%s failed", step);
}

void trial_run(const struct trial_plan *p, uint64_t seed)
{
	struct trial t = {.plan = p, .seed = seed};
	int repetitions = p->warmup + p->repetitions;

	record_trial_start(p);
	log_trial(p);
	if (p->workload->setup)
		fail_on(&t, p->workload->setup(&t), "setup");
	while (usable(&t) && t.repetition < repetitions) {
		fail_on(&t, run(&t), "run");
		t.repetition++;
	}
	/* What cleanup() reports belongs to the last repetition. */
	if (t.repetition)
		t.repetition--;
	if (p->workload->cleanup)
		p->workload->cleanup(&t);
	log_leaks();
	record_trial_end(p->index, t.failed ? "failed" : t.broken ? "void" : "ok", t.detail);
}
