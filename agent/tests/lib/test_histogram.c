// SPDX-License-Identifier: GPL-2.0
#include "lib/histogram.h"

#include <string.h>

#include "core/agent.h"
#include "tests/test.h"

static struct histogram one, two, both;

static void clear(void)
{
	memset(&one, 0, sizeof(one));
	memset(&two, 0, sizeof(two));
	memset(&both, 0, sizeof(both));
}

/*
 * Every value is in its bucket, there are no gaps between buckets, and the middle differs
 * by at most 2^-9.
 */
static void buckets_cover_all(void)
{
	struct prng p = {.state = 1};

	for (int i = 0; i + 1 < HISTOGRAM_BUCKETS; i++)
		CHECK(histogram_low(i) + histogram_width(i) == histogram_low(i + 1));
	CHECK(histogram_low(0) == 0);
	CHECK(histogram_bucket(HISTOGRAM_MAX) == HISTOGRAM_BUCKETS - 1);
	CHECK(histogram_bucket(INT64_MAX) == HISTOGRAM_BUCKETS - 1);
	CHECK(histogram_bucket(-1) == 0);
	for (int i = 0; i < 100000; i++) {
		int64_t value = prng_next(&p) >> (24 + prng_below(&p, 40));
		int bucket = histogram_bucket(value);
		int64_t low = histogram_low(bucket), width = histogram_width(bucket);
		int64_t middle = low + width / 2;
		int64_t off = value > middle ? value - middle : middle - value;

		CHECK(low <= value && value < low + width);
		CHECK(off * 512 <= value);
		CHECK(value >= 512 || off == 0);
	}
}

static void percentiles(void)
{
	clear();
	CHECK(histogram_percentile(&one, 500) == 0 && histogram_mean(&one) == 0);
	for (int i = 1; i <= 100; i++)
		histogram_add(&one, i);
	CHECK(histogram_percentile(&one, 0) == 1);
	CHECK(histogram_percentile(&one, 500) == 50);
	CHECK(histogram_percentile(&one, 990) == 99);
	CHECK(histogram_percentile(&one, 999) == 100);
	CHECK(histogram_percentile(&one, 1000) == 100);
	CHECK(histogram_mean(&one) == 50);
}

static void merged_is_as_if_counted_together(void)
{
	struct prng p = {.state = 2};

	clear();
	for (int i = 0; i < 10000; i++) {
		int64_t value = prng_below(&p, 1000000);

		histogram_add(i % 3 ? &one : &two, value);
		histogram_add(&both, value);
	}
	histogram_merge(&one, &two);
	CHECK(!memcmp(&one, &both, sizeof(one)));
}

static void write_small(void)
{
	clear();
	histogram_add(&one, 3);
	histogram_add(&one, 3);
	histogram_add(&one, 1025);
	record_histogram(2, 1, "wakeup_ns", &one, true);
}

static void write_large(void)
{
	clear();
	for (int i = 0; i < 2000; i++)
		histogram_add(&one, i);
	record_histogram(0, 0, "wakeup_ns", &one, false);
}

static void write_none(void)
{
	clear();
	record_histogram(0, 0, "wakeup_ns", &one, false);
}

static void as_records(void)
{
	const char *text;
	int lines = 0, buckets = 0;

	CHECK_TEXT(records_of(write_small),
		   "{\"type\":\"histogram\",\"trial\":2,\"repetition\":1,\"metric\":\"wakeup_ns\","
		   "\"warmup\":true,\"bits\":8,\"buckets\":[[3,2],[1024,1]]}\n");
	CHECK_TEXT(records_of(write_none), "");
	/* What does not fit in one line is in the next one; nothing is lost. */
	text = records_of(write_large);
	for (const char *c = text; *c; c++) {
		lines += *c == '\n';
		buckets += *c == '[';
	}
	CHECK(lines > 1);
	CHECK(buckets - lines == 512 + 256 + 244);
	CHECK(strstr(text, "[0,1],") && strstr(text, "[1996,4]]}\n"));
}

void test_histogram(void)
{
	buckets_cover_all();
	percentiles();
	merged_is_as_if_counted_together();
	as_records();
}
