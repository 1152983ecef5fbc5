// SPDX-License-Identifier: GPL-2.0
#include "hunt/residents.h"

#include "tests/test.h"

static void reads_numbers_of_kinds(void)
{
	struct resident residents[RESIDENTS_MOST];

	CHECK(residents_parse("opened=12,declared=3", residents) == 2);
	CHECK(residents[0].kind == kind_named("opened") && residents[0].number == 12);
	CHECK(!residents[1].kind && residents[1].number == 3);
	CHECK(residents_declared("opened=12,declared=3") == 3);
	CHECK(residents_parse("-", residents) == 0 && residents_declared("-") == 0);
	CHECK(residents_declared("opened=12") == 0);
}

static void refuses_others(void)
{
	static const char *const wrong[] = {"opened",	 "opened=",	   "opened=1x",
					    "opened=-1", "no_such_kind=1", "=1"};
	struct resident residents[RESIDENTS_MOST];
	char many[512] = "opened=1";
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(residents_parse(wrong[i], residents) == -1);
	for (i = 0; i < RESIDENTS_MOST; i++)
		strcat(many, ",opened=1");
	CHECK(residents_parse(many, residents) == -1);
}

void test_residents(void)
{
	reads_numbers_of_kinds();
	refuses_others();
}
