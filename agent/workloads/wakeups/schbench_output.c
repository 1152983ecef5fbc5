// SPDX-License-Identifier: GPL-2.0
#include "schbench_output.h"

#include <stdlib.h>
#include <string.h>

/* Schbench prints the same tables during its run: only the last one is used. */
static const char *last(const char *text, const char *what)
{
	const char *found = NULL;

	while ((text = strstr(text, what)))
		found = text++;
	return found;
}

/*
 * After the heading there is a line for each percentile: blanks or a star, "99.0th: ", the
 * value.
 */
static bool table(const char *text, const char *heading, const char *const *names, int64_t *figures)
{
	const char *at = last(text, heading);

	for (; at && *names; names++) {
		at = strstr(at, *names);
		if (at)
			*figures++ = strtoll(at + strlen(*names), NULL, 10);
	}
	return at;
}

bool schbench_read(const char *text, struct schbench_output *output)
{
	static const char *const latency[] = {"50.0th: ", "90.0th: ", "99.0th: ", "99.9th: ", NULL};
	static const char *const rps[] = {"20.0th: ", "50.0th: ", "90.0th: ", NULL};
	static const char average[] = "average rps: ";
	const char *at = last(text, average);

	if (!at ||
	    !table(text, "Wakeup Latencies percentiles (usec)", latency, output->wakeup_us) ||
	    !table(text, "Request Latencies percentiles (usec)", latency, output->request_us) ||
	    !table(text, "RPS percentiles (requests)", rps, output->rps))
		return false;
	output->average_rps = strtod(at + strlen(average), NULL) + 0.5;
	return true;
}
