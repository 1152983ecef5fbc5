// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* O_DIRECT */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "script/output.h"
#include "tests/test.h"

static struct output output;

static const char *line(int i)
{
	return i < output.nr ? output.text + output.lines[i].start : "(no line)";
}

static int add(const char *text, int64_t at_ns)
{
	return output_add(&output, text, strlen(text), at_ns);
}

static void lines(void)
{
	CHECK(!output_init(&output));
	CHECK_TEXT(output_last(&output), "");
	CHECK(!add("one\ntw", 10));
	CHECK(!add("o\r\n\n", 20));
	CHECK(!output_add(&output, "a\0b\nrest", 8, 30));
	CHECK(output.nr == 4);
	CHECK_TEXT(output_last(&output), "rest");
	output_end(&output, 40);
	CHECK(output.nr == 5 && !output.dropped);
	CHECK_TEXT(line(0), "one");
	CHECK_TEXT(line(1), "two");
	CHECK_TEXT(line(2), "");
	CHECK_TEXT(line(3), "a\xff"
			    "b");
	CHECK_TEXT(line(4), "rest");
	CHECK(output.lines[0].at_ns == 10 && output.lines[1].at_ns == 20);
	CHECK(output.lines[4].at_ns == 40);
	CHECK_TEXT(output_last(&output), "rest");
	add("\n", 50);
	CHECK_TEXT(output_last(&output), "rest");
}

static void interrupts(void)
{
	CHECK(!output_init(&output));
	CHECK(output.nr == 0);
	CHECK(add("kt-interrupt\n", 1) == 1);
	CHECK(add("kt-inter", 1) == 0);
	CHECK(add("rupt\nkt-interrupt\n", 1) == 2);
	CHECK(add(" kt-interrupt\nkt-interrupt \nkt-interrupts\n", 1) == 0);
	CHECK(output.nr == 6);
}

static void limits(void)
{
	static char text[OUTPUT_LINE + 11];
	int i;

	CHECK(!output_init(&output));
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 2] = '\n';
	add(text, 1);
	CHECK(output.nr == 2 && strlen(line(0)) == OUTPUT_LINE && strlen(line(1)) == 9);
	/* A line that just fits is not divided. */
	add(text + 9, 2);
	CHECK(output.nr == 3 && strlen(line(2)) == OUTPUT_LINE);
	for (i = 3; i < 2000; i++)
		add(text + 9, 3);
	CHECK(output.nr + output.dropped == 2000);
	CHECK(output.nr == 1 + (OUTPUT_BYTES - 10) / (OUTPUT_LINE + 1));
	CHECK(!output_init(&output));
	for (i = 0; i < OUTPUT_LINES; i++)
		add("y\n", 1);
	CHECK(output.nr == OUTPUT_LINES && !output.dropped);
	/* What is dropped can still ask for ^C. */
	CHECK(add("kt-interrupt\n", 1) == 1);
	CHECK(output.nr == OUTPUT_LINES && output.dropped == 1);
}

static void pieces(void)
{
	static char text[OUTPUT_RECORD * 2 + 1];

	CHECK(output_piece("") == 0);
	CHECK(output_piece("abc") == 3);
	memset(text, 'x', OUTPUT_RECORD * 2);
	CHECK(output_piece(text) == OUTPUT_RECORD);
	memset(text, '"', OUTPUT_RECORD * 2);
	CHECK(output_piece(text) == OUTPUT_RECORD / 2);
	memset(text, '\x1b', OUTPUT_RECORD * 2);
	CHECK(output_piece(text) == OUTPUT_RECORD / 6);
	memset(text, '\xff', OUTPUT_RECORD * 2);
	CHECK(output_piece(text) == OUTPUT_RECORD / 6);
	/* A character is not divided: 1999 bytes and one of two bytes. */
	memset(text, 'x', OUTPUT_RECORD * 2);
	memcpy(text + OUTPUT_RECORD - 1, "\xc3\xa9", 2);
	CHECK(output_piece(text) == OUTPUT_RECORD - 1);
	/* The end of the text is in the middle of a character. */
	CHECK(output_piece("a\xe2\x82") == 3);
}

static void report(void)
{
	output_report(&output, 4, 1);
}

static void records(void)
{
	static char text[OUTPUT_RECORD + 2];
	const char *written;

	CHECK(!output_init(&output));
	add("a \"b\"\n\n\x1b\xff\n", 7);
	CHECK_TEXT(records_of(report),
		   "{\"type\":\"output\",\"trial\":4,\"repetition\":1,\"source\":\"script\","
		   "\"at_ns\":7,\"text\":\"a \\\"b\\\"\"}\n"
		   "{\"type\":\"output\",\"trial\":4,\"repetition\":1,\"source\":\"script\","
		   "\"at_ns\":7,\"text\":\"\"}\n"
		   "{\"type\":\"output\",\"trial\":4,\"repetition\":1,\"source\":\"script\","
		   "\"at_ns\":7,\"text\":\"\\u001b\\ufffd\"}\n");
	CHECK(!output_init(&output));
	memset(text, 'x', OUTPUT_RECORD);
	strcpy(text + OUTPUT_RECORD, "\n");
	text[0] = '<';
	text[OUTPUT_RECORD - 1] = '\t'; /* two bytes, so it is in the second record */
	add(text, 7);
	written = strstr(records_of(report), "\n{");
	CHECK(written);
	CHECK_TEXT(written ? written : "",
		   "\n{\"type\":\"output\",\"trial\":4,\"repetition\":1,\"source\":\"script\","
		   "\"at_ns\":7,\"text\":\"\\t\"}\n");
	output_free(&output);
}

/* Each write is one message, as in /dev/kmsg. */
static int messages[2];
static int64_t missing;

static void report_log(void)
{
	missing = output_report_log(messages[0], 339, 4, 1);
}

static void message(const char *text)
{
	CHECK(write(messages[1], text, strlen(text)) == (ssize_t)strlen(text));
}

static void kernel_log(void)
{
	CHECK(!pipe2(messages, O_DIRECT | O_NONBLOCK));
	message("6,339,5140900,-;one\n SUBSYSTEM=net\n");
	/* User space has another facility than the kernel. */
	message("12,340,5140901,-;two\n");
	CHECK_TEXT(records_of(report_log),
		   "{\"type\":\"output\",\"trial\":4,\"repetition\":1,\"source\":\"log\","
		   "\"at_ns\":5140900000,\"text\":\"one\"}\n"
		   "{\"type\":\"output\",\"trial\":4,\"repetition\":1,\"source\":\"log\","
		   "\"facility\":1,\"at_ns\":5140901000,\"text\":\"two\"}\n");
	CHECK(missing == 0);
	/* Others were overwritten: before the first, and between the two. */
	message("6,350,5140900,-;one\n");
	message("4,353,5140901,-;two\n");
	CHECK(strstr(records_of(report_log), "two"));
	CHECK(missing == 11 + 2);
	close(messages[0]);
	close(messages[1]);
}

void test_output(void)
{
	lines();
	interrupts();
	limits();
	pieces();
	records();
	kernel_log();
}
