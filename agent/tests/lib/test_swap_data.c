// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "lib/swap_data.h"
#include "tests/test.h"

#define PAGE 4096

/* The number of bytes before the last run of one byte. */
static size_t random_part(const char *page)
{
	size_t end = PAGE;

	while (end && page[end - 1] == page[PAGE - 1])
		end--;
	return end;
}

static void sizes(void)
{
	struct swap_data_spec many = {.bytes = PAGE}, one = {.bytes = PAGE, .one_size = true};
	size_t least = PAGE, most = 0;
	char page[PAGE];

	for (int i = 0; i < 500; i++) {
		size_t random;

		swap_data_fill(&many, i, 0, page, PAGE);
		random = random_part(page);
		least = random < least ? random : least;
		most = random > most ? random : most;
		swap_data_fill(&one, i, 0, page, PAGE);
		/* The last random byte may be equal to the bytes that follow it. */
		CHECK(random_part(page) <= PAGE / 4 && random_part(page) > PAGE / 4 - 8);
	}
	CHECK(least >= PAGE / 16 - 16 && least < PAGE / 16 + 64);
	CHECK(most <= PAGE / 2 && most > PAGE / 2 - 64);
}

static void contents(void)
{
	struct swap_data_spec spec = {.bytes = PAGE}, other = {.bytes = PAGE, .index = 1};
	char page[PAGE], again[PAGE];

	swap_data_fill(&spec, 5, 0, page, PAGE);
	swap_data_fill(&spec, 5, 0, again, PAGE);
	CHECK(!memcmp(page, again, PAGE));
	swap_data_fill(&spec, 6, 0, again, PAGE);
	CHECK(memcmp(page, again, 64));
	swap_data_fill(&spec, 5, 1, again, PAGE);
	CHECK(memcmp(page, again, 64));
	swap_data_fill(&other, 5, 0, again, PAGE);
	CHECK(memcmp(page, again, 64));
}

void test_swap_data(void)
{
	sizes();
	contents();
}
