// SPDX-License-Identifier: GPL-2.0
#include "hunt/switches.h"

#include <string.h>

#include "tests/test.h"

static FILE *text(const char *content)
{
	return fmemopen((void *)content, strlen(content), "r");
}

static void sums_all_cpus(void)
{
	FILE *stat = text("cpu  1 2 3\nintr 1000 1 2 3\nctxt 4711\nbtime 1\n");
	FILE *interrupts = text("            CPU0       CPU1\n"
				"   0:         44          0   IO-APIC   2-edge      timer\n"
				" CAL:        100         23   Function call interrupts\n"
				" TLB:          5          6   TLB shootdowns\n");
	struct switches s;

	switches_read(stat, interrupts, &s);
	CHECK(s.switches == 4711 && s.calls == 123 && s.flushes == 11);
	fclose(stat);
	fclose(interrupts);
}

static void says_what_is_missing(void)
{
	FILE *interrupts = text("           CPU0\nIPI0:  5  Rescheduling interrupts\n");
	struct switches s;

	switches_read(NULL, interrupts, &s);
	CHECK(s.switches == -1 && s.calls == -1 && s.flushes == -1);
	fclose(interrupts);
}

void test_switches(void)
{
	sums_all_cpus();
	says_what_is_missing();
}
