// SPDX-License-Identifier: GPL-2.0
#include "hunt/switches.h"

#include <stdlib.h>
#include <string.h>

/* The sum of the counts of all CPUs, which come before the text. */
static int64_t sum_of(const char *counts)
{
	int64_t sum = 0;
	char *end;

	for (;; counts = end) {
		int64_t count = strtoll(counts, &end, 10);

		if (end == counts)
			return sum;
		sum += count;
	}
}

void switches_read(FILE *stat, FILE *interrupts, struct switches *s)
{
	char *line = NULL, *at;
	size_t room = 0;

	*s = (struct switches){-1, -1, -1};
	/* The line "intr" has a number for each interrupt. */
	while (stat && getline(&line, &room, stat) > 0)
		if (!strncmp(line, "ctxt ", 5))
			s->switches = sum_of(line + 5);
	while (interrupts && getline(&line, &room, interrupts) > 0) {
		at = line + strspn(line, " ");
		if (!strncmp(at, "CAL:", 4))
			s->calls = sum_of(at + 4);
		else if (!strncmp(at, "TLB:", 4))
			s->flushes = sum_of(at + 4);
	}
	free(line);
}

struct switches switches_now(void)
{
	FILE *stat = fopen("/proc/stat", "re"), *interrupts = fopen("/proc/interrupts", "re");
	struct switches s;

	switches_read(stat, interrupts, &s);
	if (stat)
		fclose(stat);
	if (interrupts)
		fclose(interrupts);
	return s;
}
