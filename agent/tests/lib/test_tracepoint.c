// SPDX-License-Identifier: GPL-2.0
#include <stdlib.h>
#include <string.h>

#include "lib/tracepoint.h"
#include "tests/test.h"

static const char console[] = "name: console\n"
			      "ID: 23\n"
			      "format:\n"
			      "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			      "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
			      "\n"
			      "\tfield:__data_loc char[] msg;\toffset:8;\tsize:4;\tsigned:0;\n"
			      "\tfield:__rel_loc char[] near;\toffset:12;\tsize:4;\tsigned:0;\n"
			      "\tfield:const char * action;\toffset:16;\tsize:8;\tsigned:0;\n"
			      "\tfield:bool start;\toffset:24;\tsize:1;\tsigned:0;\n"
			      "\tfield:char comm[4];\toffset:28;\tsize:4;\tsigned:0;\n"
			      "\n"
			      "print fmt: \"%s\", __get_str(msg)\n";

static void fields(void)
{
	struct tp_field f;
	size_t len;

	CHECK(tp_field_parse(console, "msg", &f));
	CHECK(f.offset == 8 && f.size == 4 && f.kind == TP_DATA_LOC);
	CHECK(tp_field_parse(console, "near", &f) && f.kind == TP_REL_LOC);
	CHECK(tp_field_parse(console, "action", &f));
	CHECK(f.offset == 16 && f.size == 8 && f.kind == TP_PLAIN);
	CHECK(tp_field_parse(console, "comm", &f) && f.offset == 28);
	CHECK(tp_field_parse(console, "common_pid", &f) && f.offset == 4);
	CHECK(!tp_field_parse(console, "pid", &f));
	CHECK(!tp_field_parse(console, "sg", &f));
	CHECK(!tp_field_parse(console, "char", &f));
	CHECK(!tp_field_parse("field:int x;\n", "x", &f));
	CHECK(!tp_field_parse("field:int x; offset:z; size:4;", "x", &f));
	CHECK(!tp_field_parse("field:int x", "x", &f));
	CHECK(!tp_field_parse("", "x", &f));
	for (len = 0; len < strlen(console); len++) {
		char *cut = strndup(console, len);

		tp_field_parse(cut, "comm", &f);
		free(cut);
	}
}

static void hit_of(struct tracer_hit *hit, const char *raw, size_t len)
{
	memset(hit->raw, 'Z', sizeof(hit->raw));
	memcpy(hit->raw, raw, len);
	hit->len = len;
}

static void values(void)
{
	/* At 8: five bytes at 16. At 12: three bytes, one byte after this word. */
	static const char raw[] = "\x17\0\0\0\x01\0\0\0\x10\0\x05\0\x01\0\x03\0hell\0\x02\x01";
	struct tp_field data = {8, 4, TP_DATA_LOC}, rel = {12, 4, TP_REL_LOC};
	struct tp_field plain = {16, 4, TP_PLAIN}, two = {21, 2, TP_PLAIN};
	struct tp_field one = {22, 1, TP_PLAIN}, eight = {0, 8, TP_PLAIN};
	struct tp_field past = {22, 2, TP_PLAIN}, odd = {0, 3, TP_PLAIN};
	struct tp_field far = {UINT32_MAX, 4, TP_PLAIN};
	struct tracer_hit hit;
	uint64_t number;
	char text[16];

	hit_of(&hit, raw, sizeof(raw) - 1);
	CHECK(tp_text(&hit, &data, text, sizeof(text)));
	CHECK_TEXT(text, "hell");
	CHECK(tp_text(&hit, &rel, text, sizeof(text)));
	CHECK_TEXT(text, "ell");
	CHECK(tp_text(&hit, &plain, text, sizeof(text)));
	CHECK_TEXT(text, "hell");
	CHECK(tp_text(&hit, &plain, text, 4));
	CHECK_TEXT(text, "hel");
	CHECK(tp_number(&hit, &two, &number) && number == 0x0102);
	CHECK(tp_number(&hit, &one, &number) && number == 1);
	CHECK(tp_number(&hit, &eight, &number) && number == 0x100000017);
	CHECK(!tp_number(&hit, &past, &number));
	CHECK(!tp_number(&hit, &odd, &number));
	CHECK(!tp_number(&hit, &far, &number));
	CHECK(!tp_text(&hit, &far, text, sizeof(text)));
	hit.len = 20;
	CHECK(!tp_text(&hit, &data, text, sizeof(text)));
	hit.len = 10;
	CHECK(!tp_text(&hit, &data, text, sizeof(text)));
}

static void constants(void)
{
	static const char line[] = "0xffffffff82345678 : \"thaw_processes\"\n";

	CHECK(tp_constant_parse(line, 0xffffffff82345678, "thaw_processes"));
	CHECK(!tp_constant_parse(line, 0xffffffff82345679, "thaw_processes"));
	CHECK(!tp_constant_parse(line, 0xffffffff82345678, "thaw_process"));
	CHECK(!tp_constant_parse(line, 0xffffffff82345678, "thaw_processes2"));
	CHECK(!tp_constant_parse("", 0, ""));
}

void test_tracepoint(void)
{
	fields();
	values();
	constants();
}
