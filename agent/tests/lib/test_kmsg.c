// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "lib/kmsg.h"
#include "tests/test.h"

static bool parse(const char *raw, size_t len, struct kmsg *m)
{
	char *copy = malloc(len ? len : 1);
	bool ok;

	memcpy(copy, raw, len);
	ok = kmsg_parse(copy, len, m);
	free(copy);
	return ok;
}

static void records(void)
{
	static const char raw[] = "6,339,5140900,-;NET: Registered; family 10\n SUBSYSTEM=net\n";
	char longer[2000] = "6,1,2,-;";
	struct kmsg m;
	size_t len;

	CHECK(parse(raw, strlen(raw), &m));
	CHECK(m.time_ns == 5140900000);
	CHECK_TEXT(m.text, "NET: Registered; family 10");
	CHECK(parse("6,339,7,c,caller=T1;x", 21, &m));
	CHECK_TEXT(m.text, "x");

	for (len = 0; len < strlen(raw); len++)
		CHECK(parse(raw, len, &m) == (len >= 16));
	CHECK(!parse("6,339;x", 7, &m));
	CHECK(!parse("a,b,c;x", 7, &m));
	CHECK(!parse("6,1,99999999999999999,-;x", 25, &m));
	memset(longer + 8, 'x', sizeof(longer) - 8);
	CHECK(parse(longer, sizeof(longer), &m));
	CHECK(strlen(m.text) == sizeof(m.text) - 1);
	memset(longer, '1', sizeof(longer));
	longer[1990] = ';';
	CHECK(!parse(longer, sizeof(longer), &m));
}

static void elapsed(void)
{
	static const char line[] =
		"Freezing user space processes completed (elapsed 0.012 seconds)";
	size_t len;

	CHECK(kmsg_elapsed(line) == 12000000);
	CHECK(kmsg_elapsed("(elapsed 20.007 seconds) done.") == 20007000000);
	CHECK(kmsg_elapsed("(elapsed 0.000 seconds)") == 0);
	for (len = 0; len < strlen(line); len++) {
		char *cut = strndup(line, len);

		CHECK(kmsg_elapsed(cut) == -1);
		free(cut);
	}
	CHECK(kmsg_elapsed("(elapsed x.001 seconds)") == -1);
	CHECK(kmsg_elapsed("(elapsed 0.001 minutes)") == -1);
	CHECK(kmsg_elapsed("(elapsed 99999999999.001 seconds)") == -1);
}

void test_kmsg(void)
{
	records();
	elapsed();
}
