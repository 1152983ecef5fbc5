// SPDX-License-Identifier: GPL-2.0
#include <stdint.h>
#include <string.h>

#include "lib/zram.h"
#include "tests/test.h"

/* From 7.2.12, with 8 MB swapped out. */
static const char *const recorded =
	" 8392704  2552414  3198976        0  3198976        0        0  "
	"      0        0\n";

static void statistics(void)
{
	struct zram_stat s;

	CHECK(zram_stat_parse(recorded, &s));
	CHECK(s.stored_bytes == (2048 + 1) * 4096);
	CHECK(s.compressed_bytes == 2552414);
	CHECK(s.pool_bytes == 3198976);
	CHECK(s.same_pages == 0 && s.compacted_pages == 0 && s.huge_pages == 0);
	CHECK(zram_stat_parse("1 2 3 4 5 6 7 8 9\n", &s));
	CHECK(s.stored_bytes == 1 && s.compressed_bytes == 2 && s.pool_bytes == 3);
	CHECK(s.same_pages == 6 && s.compacted_pages == 7 && s.huge_pages == 8);
	/* Kernels before 4.19 have no count of huge pages. */
	CHECK(!zram_stat_parse("1 2 3 4 5 6 7\n", &s));
	CHECK(!zram_stat_parse("", &s));
}

static void header(void)
{
	static char page[4096], large[65536];
	uint32_t words[3];

	memset(page, 0xff, sizeof(page));
	swap_header(page, sizeof(page), 2048);
	memcpy(words, page + 1024, sizeof(words));
	CHECK(words[0] == 1 && words[1] == 2047 && words[2] == 0);
	CHECK(!memcmp(page + 4086, "SWAPSPACE2", 10));
	CHECK(page[0] == 0 && page[1023] == 0 && page[1536] == 0 && page[4085] == 0);
	swap_header(large, sizeof(large), 16);
	CHECK(!memcmp(large + 65526, "SWAPSPACE2", 10));
}

void test_zram(void)
{
	statistics();
	header();
}
