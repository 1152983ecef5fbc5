// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <string.h>

#include "lib/symbols.h"
#include "tests/test.h"

static int read_text(struct symbols *s, const char *text)
{
	FILE *file = fmemopen((void *)text, strlen(text), "r");
	int error = symbols_read(s, file);

	fclose(file);
	return error;
}

static const char *name_at(const struct symbols *s, uint64_t address)
{
	int which = symbols_find(s, address);

	return which < 0 ? "" : symbols_name(s, which);
}

static void finds(void)
{
	static const char text[] = "ffffffff81000000 T _text\n"
				   "ffffffff81000200 t do_wait\n"
				   "ffffffff81000100 T do_exit\n"
				   "ffffffff81000300 D jiffies\n"
				   "ffffffffa0000000 t helper\t[module]\n"
				   "0000000000001000 A fixed_percpu_data\n";
	struct symbols s;

	CHECK(!read_text(&s, text));
	CHECK(s.nr == 4);
	CHECK_TEXT(name_at(&s, 0xffffffff81000000), "_text");
	CHECK_TEXT(name_at(&s, 0xffffffff810000ff), "_text");
	CHECK_TEXT(name_at(&s, 0xffffffff81000100), "do_exit");
	CHECK_TEXT(name_at(&s, 0xffffffff810001ff), "do_exit");
	/* Data do not end a function: addresses after the function count as part of it. */
	CHECK_TEXT(name_at(&s, 0xffffffff81000300), "do_wait");
	CHECK_TEXT(name_at(&s, 0xffffffffa0000001), "helper");
	CHECK_TEXT(name_at(&s, UINT64_MAX), "helper");
	CHECK(symbols_find(&s, 0xffffffff80ffffff) == -1);
	CHECK(symbols_find(&s, 0) == -1);
	symbols_free(&s);
}

static void names_once(void)
{
	static const char text[] = "ffffffff81000000 T __memcpy\n"
				   "ffffffff81000000 W memcpy\n"
				   "ffffffff81000000 t ___x\n"
				   "ffffffff81000100 t b\n"
				   "ffffffff81000100 t a\n";
	struct symbols s;

	CHECK(!read_text(&s, text));
	CHECK(s.nr == 2);
	CHECK_TEXT(name_at(&s, 0xffffffff81000000), "memcpy");
	CHECK_TEXT(name_at(&s, 0xffffffff81000100), "a");
	symbols_free(&s);
}

static void refuses(void)
{
	struct symbols s;

	CHECK(read_text(&s, "0000000000000000 T a\n0000000000000000 t b\n") == -EACCES);
	CHECK(read_text(&s, "no symbols\n") == -EACCES);
	CHECK(!s.all && !s.names);
}

/* Many symbols in no order: every address is found, and so are those after it. */
static void finds_many(void)
{
	struct prng p = {3};
	struct symbols s;
	FILE *file = tmpfile();
	int i;

	for (i = 0; i < 5000; i++)
		fprintf(file, "%016llx T f%d\n", 0xffff000000000000 + ((i * 2909ULL) % 5000) * 64,
			(i * 2909) % 5000);
	rewind(file);
	CHECK(!symbols_read(&s, file));
	fclose(file);
	CHECK(s.nr == 5000);
	for (i = 0; i < 1000; i++) {
		uint64_t which = prng_below(&p, 5000), inside = prng_below(&p, 64);
		char expected[16];

		snprintf(expected, sizeof(expected), "f%d", (int)which);
		CHECK_TEXT(name_at(&s, 0xffff000000000000 + which * 64 + inside), expected);
	}
	symbols_free(&s);
}

void test_symbols(void)
{
	finds();
	names_once();
	refuses();
	finds_many();
}
