// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* stpcpy() */
#include <stdlib.h>
#include <string.h>

#include "script/directives.h"
#include "tests/test.h"

static struct script script;

/* The message about the directives and the variables; "" if both are valid. */
static const char *message(const char *directives, const char *variables)
{
	static char text[1000], list[1000], error[300];

	strcpy(text, directives);
	strcpy(list, variables);
	error[0] = '\0';
	if (script_parse(&script, text, error, sizeof(error)) ||
	    script_add_environment(&script, list, error, sizeof(error)))
		CHECK(error[0]);
	return error;
}

static void all_of_them(void)
{
	CHECK_TEXT(
		message("argument /bin/sh\nargument a b=c \nargument \nenvironment PATH=/bin:/x\n"
			"environment N=7\nenvironment E=\nallow exit 3\nallow signal 2\n"
			"limit_ms 1500\n",
			"N=1000,B=2"),
		"");
	CHECK(script.nr_arguments == 3 && !script.arguments[3]);
	CHECK_TEXT(script.arguments[0], "/bin/sh");
	CHECK_TEXT(script.arguments[1], "a b=c ");
	CHECK_TEXT(script.arguments[2], "");
	/* The trial's value replaces that of the directives. */
	CHECK(script.nr_variables == 4 && !script.variables[4]);
	CHECK_TEXT(script.variables[0], "PATH=/bin:/x");
	CHECK_TEXT(script.variables[1], "N=1000");
	CHECK_TEXT(script.variables[2], "E=");
	CHECK_TEXT(script.variables[3], "B=2");
	CHECK(script.limit_ms == 1500);
	CHECK(script_allows(&script, false, 0));
	CHECK(script_allows(&script, false, 3));
	CHECK(script_allows(&script, true, 2));
	CHECK(!script_allows(&script, true, 3));
	CHECK(!script_allows(&script, false, 2));
}

static void positional(void)
{
	CHECK_TEXT(message("positional\nargument x\n", "N=1,B=two"), "");
	CHECK(script.nr_arguments == 3);
	CHECK_TEXT(script.arguments[1], "1");
	CHECK_TEXT(script.arguments[2], "two");
	CHECK_TEXT(message("argument x\npositional\n", "-"), "");
	CHECK(script.nr_arguments == 1 && !script.nr_variables && script.limit_ms == 600000);
}

static void wrong_ones(void)
{
	static const struct {
		const char *directives, *variables, *error;
	} cases[] = {
		{"", "-", "there is no program to run: no line begins with argument"},
		{"argument x\nlimit_ms 5", "-", "line 2 is cut off: it has no newline"},
		{"argument x\n\n", "-",
		 "line 2: \"\": expected a directive, a blank and its value"},
		{"argument x\nargumemt y\n", "-", "line 2: \"argumemt y\": unknown directive"},
		{"allow exit 256\n", "-",
		 "line 1: \"allow exit 256\": expected an exit status up to 255"},
		{"allow signal 0\n", "-",
		 "line 1: \"allow signal 0\": expected a signal from 1 to 64"},
		{"allow exit\n", "-",
		 "line 1: \"allow exit\": expected exit or signal, and a number"},
		{"limit_ms 0\n", "-",
		 "line 1: \"limit_ms 0\": expected a number of ms from 1 to 86400000"},
		{"limit_ms -1\n", "-",
		 "line 1: \"limit_ms -1\": expected a number of ms from 1 to 86400000"},
		{"limit_ms 99999999999999999999\n", "-",
		 "line 1: \"limit_ms 99999999999999999999\": expected a number of ms from 1 to "
		 "86400000"},
		{"environment =x\n", "-", "line 1: \"environment =x\": expected NAME=VALUE"},
		{"argument x\n", "N", "environment: \"N\": expected NAME=VALUE"},
		{"argument x\n", "N=1,", "environment: \"\": expected NAME=VALUE"},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_TEXT(message(cases[i].directives, cases[i].variables), cases[i].error);
}

static void too_many(void)
{
	char *text = malloc((ARGUMENTS_MAX + 1) * 11 + 1), *at = text, error[100];
	int i;

	for (i = 0; i < ARGUMENTS_MAX; i++)
		at = stpcpy(at, "argument x\n");
	CHECK(!script_parse(&script, text, error, sizeof(error)));
	for (at = text, i = 0; i <= ARGUMENTS_MAX; i++)
		at = stpcpy(at, "argument x\n");
	CHECK(script_parse(&script, text, error, sizeof(error)));
	CHECK_TEXT(error, "line 1001: \"argument x\": there are too many arguments");
	free(text);
}

void test_directives(void)
{
	all_of_them();
	positional();
	wrong_ones();
	too_many();
}
