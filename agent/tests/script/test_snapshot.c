// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "script/snapshot.h"
#include "tests/test.h"

static struct snapshot before, after;

static void parser(void)
{
	const char *text = "slabinfo - version: 2.1\n"
			   "# name            <active_objs> <num_objs> <objsize>\n"
			   "kmalloc-64          7        64     64   64    1 : tunables\n"
			   "MemFree:         123456 kB\n"
			   "HugePages_Total:       0\n"
			   "Active(anon):     -5 kB\n"
			   "some avg10=0.00 avg60=0.00\n"
			   "\n"
			   "usage_usec\n"
			   "9\n"
			   "nr_dying_descendants 12\n"
			   "cut 9";
	static const struct {
		const char *name;
		int64_t value;
	} expected[] = {
		{"kmalloc-64", 7},    {"MemFree", 123456},	    {"HugePages_Total", 0},
		{"Active(anon)", -5}, {"nr_dying_descendants", 12},
	};
	char name[SNAPSHOT_NAME];
	int64_t value;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		CHECK(snapshot_next(&text, name, &value));
		CHECK_TEXT(name, expected[i].name);
		CHECK(value == expected[i].value);
	}
	CHECK(!snapshot_next(&text, name, &value));
	CHECK(!*text);
}

static void report(void)
{
	snapshot_report(&before, &after, 4, 1);
}

static void changes(void)
{
	snapshot_init(&before);
	snapshot_init(&after);
	strcpy(before.text[0], "MemFree: 10 kB\nSlab: 5 kB\nPercpu: 1 kB\n");
	strcpy(after.text[0], "MemFree: 8 kB\nSlab: 5 kB\nPercpu: 2 kB\n");
	/* Another order, a new counter and a missing one; the last had no objects. */
	strcpy(before.text[2], "a 1\nb 2\ngone 3\nempty 0\n");
	strcpy(after.text[2], "new 4\nb 2\na 5\n");
	CHECK_TEXT(records_of(report),
		   "{\"type\":\"delta\",\"trial\":4,\"repetition\":1,\"file\":\"meminfo\","
		   "\"name\":\"MemFree\",\"before\":10,\"after\":8}\n"
		   "{\"type\":\"delta\",\"trial\":4,\"repetition\":1,\"file\":\"meminfo\","
		   "\"name\":\"Percpu\",\"before\":1,\"after\":2}\n"
		   "{\"type\":\"delta\",\"trial\":4,\"repetition\":1,\"file\":\"slabinfo\","
		   "\"name\":\"new\",\"before\":0,\"after\":4}\n"
		   "{\"type\":\"delta\",\"trial\":4,\"repetition\":1,\"file\":\"slabinfo\","
		   "\"name\":\"a\",\"before\":1,\"after\":5}\n"
		   "{\"type\":\"delta\",\"trial\":4,\"repetition\":1,\"file\":\"slabinfo\","
		   "\"name\":\"gone\",\"before\":3,\"after\":0}\n");
}

static void hidden(void)
{
	/* Only the first file: the others have changed as above. */
	before.text[0][0] = '\0';
	CHECK(strstr(records_of(report), "MemFree"));
	strcpy(before.text[0], "MemFree: 10 kB\n");
	after.text[0][0] = '\0';
	CHECK(!strstr(records_of(report), "MemFree"));
	CHECK(strstr(records_of(report), "gone"));
}

static void of_this_host(void)
{
	const char *text;
	char name[SNAPSHOT_NAME];
	int64_t value;

	snapshot_take(&before);
	text = before.text[0];
	CHECK(snapshot_next(&text, name, &value));
	CHECK_TEXT(name, "MemTotal");
	CHECK(value > 0);
}

void test_snapshot(void)
{
	parser();
	changes();
	hidden();
	of_this_host();
}
