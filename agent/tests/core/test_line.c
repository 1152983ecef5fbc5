// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "core/agent.h"
#include "tests/test.h"

static const char *str(const char *value)
{
	static struct line l;

	line_begin(&l, "t");
	line_str(&l, "s", value);
	l.text[line_end(&l)] = '\0';
	return l.text;
}

static const char *value(const char *text)
{
	static struct line l;

	line_begin(&l, "t");
	line_value(&l, "v", text);
	l.text[line_end(&l)] = '\0';
	return l.text;
}

static void escapes(void)
{
	CHECK_TEXT(str(""), "{\"type\":\"t\",\"s\":\"\"}\n");
	CHECK_TEXT(str("a\"b\\c/"), "{\"type\":\"t\",\"s\":\"a\\\"b\\\\c/\"}\n");
	CHECK_TEXT(str("\n\t\r\x01\x1f\x7f"),
		   "{\"type\":\"t\",\"s\":\"\\n\\t\\u000d\\u0001\\u001f\\u007f\"}\n");
	CHECK_TEXT(str("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x90\xa7"),
		   "{\"type\":\"t\",\"s\":\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x90\xa7\"}\n");
	/* Not valid UTF-8: a single byte, one cut short, overlong, a surrogate, above U+10FFFF. */
	CHECK_TEXT(str("\x80"), "{\"type\":\"t\",\"s\":\"\\ufffd\"}\n");
	CHECK_TEXT(str("\xe2\x82"), "{\"type\":\"t\",\"s\":\"\\ufffd\\ufffd\"}\n");
	CHECK_TEXT(str("\xc0\xaf"), "{\"type\":\"t\",\"s\":\"\\ufffd\\ufffd\"}\n");
	CHECK_TEXT(str("\xed\xa0\x80"), "{\"type\":\"t\",\"s\":\"\\ufffd\\ufffd\\ufffd\"}\n");
	CHECK_TEXT(str("\xf4\x90\x80\x80"),
		   "{\"type\":\"t\",\"s\":\"\\ufffd\\ufffd\\ufffd\\ufffd\"}\n");
}

static void recognises_integers(void)
{
	CHECK_TEXT(value("3000"), "{\"type\":\"t\",\"v\":3000}\n");
	CHECK_TEXT(value("0"), "{\"type\":\"t\",\"v\":0}\n");
	CHECK_TEXT(value("-7"), "{\"type\":\"t\",\"v\":-7}\n");
	CHECK_TEXT(value("9223372036854775807"), "{\"type\":\"t\",\"v\":9223372036854775807}\n");
	CHECK_TEXT(value("9223372036854775808"),
		   "{\"type\":\"t\",\"v\":\"9223372036854775808\"}\n");
	CHECK_TEXT(value("007"), "{\"type\":\"t\",\"v\":\"007\"}\n");
	CHECK_TEXT(value("+1"), "{\"type\":\"t\",\"v\":\"+1\"}\n");
	CHECK_TEXT(value("-"), "{\"type\":\"t\",\"v\":\"-\"}\n");
	CHECK_TEXT(value("1e3"), "{\"type\":\"t\",\"v\":\"1e3\"}\n");
	CHECK_TEXT(value("shared"), "{\"type\":\"t\",\"v\":\"shared\"}\n");
}

static void nests(void)
{
	struct line l;

	line_begin(&l, "t");
	line_open(&l, "a");
	line_close(&l);
	line_open(&l, "b");
	line_int(&l, "x", 1);
	line_bool(&l, "y", true);
	line_close(&l);
	line_bool(&l, "z", false);
	l.text[line_end(&l)] = '\0';
	CHECK_TEXT(l.text, "{\"type\":\"t\",\"a\":{},\"b\":{\"x\":1,\"y\":true},\"z\":false}\n");
}

static void cuts_at_any_length(void)
{
	char text[5000], filler[5000];
	struct line l;
	size_t len;

	memset(filler, 'f', sizeof(filler));
	for (len = 0; len < 2200; len++) {
		memset(text, '\\', len);
		text[len] = '\0';
		filler[4200 - len] = '\0';
		line_begin(&l, "t");
		line_open(&l, "p");
		line_str(&l, "a", text);
		line_str(&l, "b", filler);
		line_str(&l, "c", text);
		line_int(&l, "d", 123456);
		line_close(&l);
		CHECK(line_end(&l) <= sizeof(l.text));
		CHECK(!memcmp(l.text + l.len - 3, "}}\n", 3));
		/* No string is left open: the character before is a quote or a digit. */
		CHECK(strchr("\"6", l.text[l.len - 4]) != NULL);
		filler[4200 - len] = 'f';
	}
}

void test_line(void)
{
	escapes();
	recognises_integers();
	nests();
	cuts_at_any_length();
}
