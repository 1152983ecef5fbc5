// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>

#include "hunt/sizes.h"
#include "tests/test.h"

static const struct size_limits limits = {
	.budget_ns = 100000000,
	.longest_ns = 15000000000,
	.memory_kb = 1000000,
};

/* The sizes that the screen measures of one way, of objects with this cost, in their order. */
static const char *screened(int64_t each_ns, int64_t square_ns, int64_t each_kb)
{
	static const int64_t order[] = {72, 288, 1152, 4608, 18432, 18, 5, 288, 36};
	static char text[100];
	struct sizes s = {0};
	int length = 0;

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		int64_t n = order[i];
		int64_t ns = each_ns * n + square_ns * n * n;
		struct size_cost cost = {ns, ns, each_kb * n};

		if (sizes_beyond(&s, n, &limits) || sizes_needless(&s, n, &limits))
			continue;
		sizes_add(&s, n, &cost);
		length += sprintf(text + length, "%s%lld", length ? " " : "", (long long)n);
	}
	return text;
}

static void which(void)
{
	CHECK_TEXT(screened(100, 0, 0), "72 288 1152 4608 18432");
	CHECK_TEXT(screened(10000, 0, 0), "72 288 1152 4608");
	/* Three are one fewer than a verdict needs, so a small one is added; 5 is not needed. */
	CHECK_TEXT(screened(30000, 0, 0), "72 288 1152 18");
	CHECK_TEXT(screened(0, 40, 0), "72 288 1152 18");
	CHECK_TEXT(screened(60000, 0, 0), "72 288 18 5");
	/* 288 may cost 16 times as much as 72, until it is known how the cost grows. */
	CHECK_TEXT(screened(100000, 0, 0), "72 18 5 288");
	CHECK_TEXT(screened(20000, 1500, 0), "72 18 5 36");
	CHECK_TEXT(screened(500000, 0, 0), "72 18 5 36");
	/* 1,152 of them take 691 MB of 1 GB. */
	CHECK_TEXT(screened(100, 0, 600), "72 288 1152 18");
}

static void others(void)
{
	struct size_limits unlimited = {.memory_kb = 1000000};
	struct sizes s = {0};

	CHECK(!sizes_beyond(&s, 72, &limits));
	sizes_add(&s, 72, &(struct size_cost){1000000000, 1000000000, 0});
	CHECK(sizes_beyond(&s, 288, &limits));
	CHECK(!sizes_beyond(&s, 72, &limits));
	CHECK(!sizes_beyond(&s, 288, &unlimited));
	/* A warm-up has as many objects as the point that counts. */
	sizes_add(&s, 72, &(struct size_cost){1000, 1000, 0});
	CHECK(s.count == 1);
	sizes_add(&s, 288, &(struct size_cost){1000, 20000000000, 0});
	CHECK(sizes_beyond(&s, 1152, &limits));
}

void test_sizes(void)
{
	which();
	others();
}
