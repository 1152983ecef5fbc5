// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <string.h>

#include "lib/stacks.h"
#include "tests/test.h"

#define PERIOD_NS 100

static struct symbols symbols;
static char reported[8192];

static void report(void *to, const char *text, int64_t count, int64_t ns)
{
	size_t len = strlen(reported);

	(void)to;
	snprintf(reported + len, sizeof(reported) - len, "%s %d %d\n", text, (int)count, (int)ns);
}

/* Chains are in perf's order: innermost first. */
static void add(struct stacks *s, int64_t ns, bool idle, bool user, int nr, const uint64_t *chain)
{
	struct cpu_sample sample = {.ns = ns, .idle_task = idle, .user = user, .nr = nr};

	memcpy(sample.chain, chain, nr * sizeof(*chain));
	CHECK(!stacks_add(s, &symbols, &sample, PERIOD_NS));
}

static void check_report(struct stacks *s, const char *expected)
{
	reported[0] = '\0';
	CHECK(!stacks_report(s, &symbols, report, NULL));
	CHECK_TEXT(reported, expected);
	stacks_free(s);
}

static void counts(void)
{
	/*
	 * b begins at 0x20: as a return address this still belongs to a, whose last instruction
	 * was the call.
	 */
	static const uint64_t inner[] = {0x25, 0x20, 0x31}, other[] = {0x20, 0x15}, low[] = {0x5};
	struct stacks s = {0};

	add(&s, 90, false, false, 3, inner);
	add(&s, 110, false, false, 3, inner);
	add(&s, 50, false, false, 2, other);
	add(&s, 100, false, false, 1, low);
	check_report(&s, "[unknown] 1 100\na;b 1 50\nc;a;b 2 200\n");
	check_report(&s, "");
}

static void marks(void)
{
	static const uint64_t chain[] = {0x25};
	struct stacks s = {0};

	add(&s, 100, false, true, 0, chain);
	add(&s, 100, true, false, 1, chain);
	add(&s, 149, false, false, 1, chain);
	add(&s, 150, false, false, 1, chain);
	check_report(&s, "[idle task];b 1 100\n[user] 1 100\nb 1 149\nb;[no interrupts] 1 150\n");
}

static void merges_equal_names(void)
{
	/* Two functions with the same name. */
	static const uint64_t first[] = {0x31}, second[] = {0x41};
	struct stacks s = {0};

	add(&s, 1, false, false, 1, first);
	add(&s, 2, false, false, 1, second);
	check_report(&s, "c 2 3\n");
}

static void cuts_the_outermost(void)
{
	uint64_t chain[SAMPLER_CHAIN_MAX];
	struct stacks s = {0};
	int i;

	for (i = 0; i < SAMPLER_CHAIN_MAX; i++)
		chain[i] = 0x51;
	chain[0] = 0x25;
	add(&s, 1, true, false, SAMPLER_CHAIN_MAX, chain);
	reported[0] = '\0';
	CHECK(!stacks_report(&s, &symbols, report, NULL));
	CHECK(!strncmp(reported, "[cut];", 6));
	CHECK(strlen(reported) > STACK_TEXT_MAX - 64 &&
	      strlen(reported) <= STACK_TEXT_MAX + strlen(" 1 1\n"));
	CHECK_TEXT(reported + strlen(reported) - strlen(";b 1 1\n"), ";b 1 1\n");
	stacks_free(&s);
}

/*
 * More stacks than the first tables have room for: all are reported, in order, each with
 * its count.
 */
static void holds_many(void)
{
	struct stacks s = {0};
	uint64_t chain[12];
	int64_t count = 0, ns = 0;
	const char *at;
	int i, j, lines = 0, a, b;

	for (i = 0; i < 3 * 4096; i++) {
		for (j = 0; j < 12; j++)
			chain[j] = (i % 4096) >> j & 1 ? 0x15 : 0x25;
		add(&s, 1, false, false, 12, chain);
	}
	CHECK(s.nr == 4096);
	reported[0] = '\0';
	for (i = 0; (size_t)i < s.room; i++) {
		count += s.all[i].count;
		ns += s.all[i].ns;
		lines += s.all[i].count == 3;
	}
	CHECK(count == 3 * 4096 && ns == count && lines == 4096);
	CHECK(!stacks_report(&s, &symbols, report, NULL));
	at = strchr(reported, ' ');
	CHECK(at && sscanf(at, " %d %d", &a, &b) == 2 && a == 3 && b == 3);
	CHECK(!strncmp(reported, "a;a;a;a;a;a;a;a;a;a;a;a 3 3\n", 28));
	stacks_free(&s);
}

void test_stacks(void)
{
	static char long_name[300];
	char text[600];
	FILE *file;

	memset(long_name, 'l', 100);
	snprintf(text, sizeof(text),
		 "0000000000000010 T a\n0000000000000020 t b\n0000000000000030 t c\n"
		 "0000000000000040 t c\n0000000000000050 t %s\n",
		 long_name);
	file = fmemopen(text, strlen(text), "r");
	CHECK(!symbols_read(&symbols, file));
	fclose(file);
	counts();
	marks();
	merges_equal_names();
	cuts_the_outermost();
	holds_many();
	symbols_free(&symbols);
}
