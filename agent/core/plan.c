// SPDX-License-Identifier: GPL-2.0
/*
 * The plan: the trials that the lab wants to run, as docs/formats.md describes it. If any
 * part of a plan is not understood, none of it is run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "lib/sampler.h"

extern const struct workload *const __start_workloads[];
extern const struct workload *const __stop_workloads[];

const struct workload *workload_at(int i)
{
	return i < __stop_workloads - __start_workloads ? __start_workloads[i] : NULL;
}

const struct workload *workload_find(const char *name)
{
	const struct workload *w;
	int i;

	for (i = 0; (w = workload_at(i)); i++)
		if (!strcmp(w->name, name))
			return w;
	return NULL;
}

/* The line that is being read; next_word() removes words from its beginning. */
struct reader {
	char *rest; /* NULL after the last word */
	int number;
	char *error;
};

static int report_error(struct reader *r, const char *what, ...) PRINTF(2, 3);

static int report_error(struct reader *r, const char *what, ...)
{
	int n = snprintf(r->error, DETAIL_MAX, "plan line %d: ", r->number);
	va_list args;

	va_start(args, what);
	vsnprintf(r->error + n, DETAIL_MAX - n, what, args);
	va_end(args);
	return -1;
}

static void *grow(void *array, int count, size_t size)
{
	array = realloc(array, (count + 1) * size);
	if (!array)
		agent_error("not enough memory to read the plan");
	memset((char *)array + count * size, 0, size);
	return array;
}

static char *copy(const char *text)
{
	char *result = strdup(text);

	if (!result)
		agent_error("not enough memory to read the plan");
	return result;
}

/* The next word, never empty; NULL at the end of the line or before a second blank. */
static char *next_word(struct reader *r)
{
	char *word = r->rest;

	if (!word || !*word || *word == ' ')
		return NULL;
	r->rest = strchr(word, ' ');
	if (r->rest)
		*r->rest++ = '\0';
	return word;
}

static int at_end(struct reader *r)
{
	return r->rest ? report_error(r, "there is more on the line than expected") : 0;
}

/* A decimal number from 0 to max, digits only. */
static int next_number(struct reader *r, const char *what, uint64_t max, uint64_t *value)
{
	char *word = next_word(r);

	if (!word)
		return report_error(r, "%s is missing", what);
	errno = 0;
	if (word[strspn(word, "0123456789")] || (*value = strtoull(word, NULL, 10)) > max || errno)
		return report_error(r, "%s: expected a number up to %llu, not \"%s\"", what,
				    (unsigned long long)max, word);
	return 0;
}

static int next_int(struct reader *r, const char *what, int *value)
{
	uint64_t number;

	if (next_number(r, what, INT32_MAX, &number))
		return -1;
	*value = number;
	return 0;
}

static int read_seed(struct reader *r, struct plan *plan)
{
	return next_number(r, "seed", UINT64_MAX, &plan->seed) || at_end(r) ? -1 : 0;
}

static int read_module(struct reader *r, struct plan *plan)
{
	char *path = next_word(r);

	if (!path)
		return report_error(r, "module: the path is missing");
	plan->modules = grow(plan->modules, plan->nr_modules, sizeof(*plan->modules));
	plan->modules[plan->nr_modules++] = copy(path);
	return at_end(r);
}

static int read_profile(struct reader *r, struct plan *plan)
{
	uint64_t period;

	if (next_number(r, "profile", INT32_MAX, &period))
		return -1;
	if (period && period < SAMPLER_PERIOD_MIN_NS)
		return report_error(r, "profile: expected 0, or a period of at least %d ns",
				    SAMPLER_PERIOD_MIN_NS);
	plan->profile_ns = period;
	return at_end(r);
}

static bool has_param(const struct trial_plan *t, const char *name)
{
	int i;

	for (i = 0; i < t->nr_params; i++)
		if (!strcmp(t->params[i].name, name))
			return true;
	return false;
}

static bool knows_param(const struct workload *w, const char *name)
{
	const char *const *p;

	for (p = w->params; p && *p; p++)
		if (!strcmp(*p, name))
			return true;
	return false;
}

static int read_param(struct reader *r, struct trial_plan *t, char *word)
{
	char *value = strchr(word, '=');

	if (!value || value == word || !value[1])
		return report_error(r, "expected name=value, not \"%s\"", word);
	*value++ = '\0';
	if (!knows_param(t->workload, word))
		return report_error(r, "%s has no parameter \"%s\"", t->workload->name, word);
	if (has_param(t, word))
		return report_error(r, "parameter %s appears twice", word);
	t->params = grow(t->params, t->nr_params, sizeof(*t->params));
	t->params[t->nr_params++] = (struct param){copy(word), copy(value)};
	return 0;
}

static int read_trial(struct reader *r, struct plan *plan)
{
	const char *const *p;
	struct trial_plan *t;
	char *word;
	int i;

	plan->trials = grow(plan->trials, plan->nr_trials, sizeof(*plan->trials));
	t = &plan->trials[plan->nr_trials++];
	t->profile_ns = plan->profile_ns;
	if (next_int(r, "trial index", &t->index))
		return -1;
	for (i = 0; i < plan->nr_trials - 1; i++)
		if (plan->trials[i].index == t->index)
			return report_error(r, "trial %d appears twice", t->index);
	word = next_word(r);
	if (!word)
		return report_error(r, "the workload is missing");
	t->workload = workload_find(word);
	if (!t->workload)
		return report_error(r, "this agent has no workload \"%s\"", word);
	if (next_int(r, "warm-ups", &t->warmup) || next_int(r, "repetitions", &t->repetitions))
		return -1;
	while ((word = next_word(r)))
		if (read_param(r, t, word))
			return -1;
	for (p = t->workload->params; p && *p; p++)
		if (!has_param(t, *p))
			return report_error(r, "parameter %s of %s is missing", *p,
					    t->workload->name);
	return at_end(r);
}

static int read_line(struct reader *r, struct plan *plan)
{
	char *word = next_word(r);

	if (r->number == 1) {
		if (!word || strcmp(word, "kteardown-plan") || !r->rest || strcmp(r->rest, "1"))
			return report_error(r, "expected \"kteardown-plan 1\"");
		return 0;
	}
	if (!word)
		return report_error(r, "expected a directive at its beginning");
	if (!strcmp(word, "seed"))
		return read_seed(r, plan);
	if (!strcmp(word, "module"))
		return read_module(r, plan);
	if (!strcmp(word, "profile"))
		return read_profile(r, plan);
	if (!strcmp(word, "trial"))
		return read_trial(r, plan);
	return report_error(r, "unknown directive \"%s\"", word);
}

int plan_parse(const char *text, size_t len, struct plan *plan, char *error)
{
	struct reader r = {.number = 1, .error = error};
	const char *end = text + len;

	memset(plan, 0, sizeof(*plan));
	if (!len)
		return report_error(&r, "the plan is empty");
	for (; text < end; r.number++) {
		const char *newline = memchr(text, '\n', end - text);
		char *line;
		int status;

		/*
		 * If the end of the line is missing, its last number may lack digits and still be a
		 * number.
		 */
		if (!newline)
			return report_error(&r,
					    "the line is cut off: it has no newline at its end");
		if (memchr(text, '\0', newline - text))
			return report_error(&r, "the line contains a zero byte");
		line = strndup(text, newline - text);
		if (!line)
			agent_error("not enough memory to read the plan");
		r.rest = line;
		status = read_line(&r, plan);
		free(line);
		if (status)
			return status;
		text = newline + 1;
	}
	return 0;
}

void plan_free(struct plan *plan)
{
	int i, j;

	for (i = 0; i < plan->nr_modules; i++)
		free(plan->modules[i]);
	for (i = 0; i < plan->nr_trials; i++) {
		for (j = 0; j < plan->trials[i].nr_params; j++) {
			free(plan->trials[i].params[j].name);
			free(plan->trials[i].params[j].value);
		}
		free(plan->trials[i].params);
	}
	free(plan->modules);
	free(plan->trials);
	memset(plan, 0, sizeof(*plan));
}
