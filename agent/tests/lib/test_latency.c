// SPDX-License-Identifier: GPL-2.0
#include "lib/latency.h"
#include "tests/test.h"

#define MS 1000000LL

static void gaps_that_overlap(void)
{
	/* A gap that began before, two inside, and one that ends after. */
	static const int64_t stamps[] = {0, 10, 20, 25, 40, 50, 60};
	int64_t gaps[ARRAY_SIZE(stamps)];

	CHECK(latency_gaps(stamps, ARRAY_SIZE(stamps), 15, 45, gaps) == 4);
	CHECK(gaps[0] == 10 && gaps[1] == 5 && gaps[2] == 15 && gaps[3] == 10);
	CHECK(latency_longest(gaps, 4) == 15);
	CHECK(latency_gaps(stamps, ARRAY_SIZE(stamps), 60, 70, gaps) == 0);
	CHECK(latency_gaps(stamps, 0, 0, 70, gaps) == 0);
	CHECK(latency_longest(gaps, 0) == 0);
}

static void healthy_probe(void)
{
	int64_t gaps[100];

	for (int i = 0; i < 100; i++)
		gaps[i] = MS + i;
	CHECK(latency_percentile(gaps, 100, MS, 500) == MS + 49);
	CHECK(latency_percentile(gaps, 100, MS, 990) == MS + 98);
	CHECK(latency_percentile(gaps, 100, MS, 1000) == MS + 99);
}

/* A second without a run counts as a thousand attempts, not as one. */
static void starved_probe(void)
{
	int64_t gaps[1000];

	for (int i = 0; i < 999; i++)
		gaps[i] = MS;
	gaps[999] = 1001 * MS;
	/* 999 attempts of 1 ms, and 1001 attempts of 1, 2, ... 1001 ms. */
	CHECK(latency_percentile(gaps, 1000, MS, 500) == MS);
	CHECK(latency_percentile(gaps, 1000, MS, 750) == 501 * MS);
	CHECK(latency_percentile(gaps, 1000, MS, 990) == 981 * MS);
	CHECK(latency_percentile(gaps, 1000, MS, 1000) == 1001 * MS);
}

static void medians(void)
{
	int64_t odd[] = {5, 1, 3}, even[] = {4, 1, 2, 3};

	CHECK(latency_median(odd, 3) == 3);
	CHECK(latency_median(even, 4) == 2);
	CHECK(latency_median(odd, 0) == 0);
	CHECK(latency_percentile(odd, 0, MS, 500) == 0);
}

static void blocked_time_counts_once(void)
{
	static const struct operation operations[] = {
		{0, 10}, {5, 40}, {10, 45}, {20, 41}, {30, 35}, {100, 121}, {110, 115}, {200, 220},
	};

	/* 5 to 45 by three operations, one of which ends inside another; 100 to 121. */
	CHECK(latency_blocked(operations, ARRAY_SIZE(operations), 20) == 40 + 21);
	CHECK(latency_blocked(operations, ARRAY_SIZE(operations), 19) == 40 + 21 + 20);
	CHECK(latency_blocked(operations, ARRAY_SIZE(operations), 100) == 0);
	CHECK(latency_blocked(operations, 0, 20) == 0);
}

void test_latency(void)
{
	gaps_that_overlap();
	healthy_probe();
	starved_probe();
	medians();
	blocked_time_counts_once();
}
