// SPDX-License-Identifier: GPL-2.0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "directives.h"

#define DEFAULT_LIMIT_MS 600000
/* A day: longer than any limit of the lab. */
#define MAX_LIMIT_MS 86400000

/* A decimal number from min to max, digits only; -1 if it is not one. */
static int64_t number(const char *text, int64_t min, int64_t max)
{
	int64_t value;

	if (!*text || text[strspn(text, "0123456789")] || strlen(text) > 12)
		return -1;
	value = strtoll(text, NULL, 10);
	return value < min || value > max ? -1 : value;
}

/* These return what is wrong, or NULL. */

static const char *add_argument(struct script *s, char *text)
{
	if (s->nr_arguments == ARGUMENTS_MAX)
		return "there are too many arguments";
	s->arguments[s->nr_arguments++] = text;
	return NULL;
}

static const char *add_variable(struct script *s, char *text)
{
	size_t len = strcspn(text, "=");
	int i;

	if (!len || !text[len])
		return "expected NAME=VALUE";
	/* A program may read the first or the last of two with one name. */
	for (i = 0; i < s->nr_variables; i++)
		if (!strncmp(s->variables[i], text, len + 1))
			break;
	if (i == VARIABLES_MAX)
		return "there are too many variables";
	s->variables[i] = text;
	if (i == s->nr_variables)
		s->nr_variables++;
	return NULL;
}

static const char *add_allowed(struct script *s, char *text)
{
	bool signal = !strncmp(text, "signal ", 7);
	int64_t code;

	if (!signal && strncmp(text, "exit ", 5))
		return "expected exit or signal, and a number";
	code = number(strchr(text, ' ') + 1, signal, signal ? 64 : 255);
	if (code < 0)
		return signal ? "expected a signal from 1 to 64"
			      : "expected an exit status up to 255";
	if (s->nr_allowed == ALLOWED_MAX)
		return "there are too many allowed ends";
	s->allowed[s->nr_allowed].signal = signal;
	s->allowed[s->nr_allowed++].code = code;
	return NULL;
}

static const char *directive(struct script *s, char *line)
{
	char *rest = strchr(line, ' ');

	if (!strcmp(line, "positional")) {
		s->positional = true;
		return NULL;
	}
	if (!rest)
		return "expected a directive, a blank and its value";
	*rest++ = '\0';
	if (!strcmp(line, "argument"))
		return add_argument(s, rest);
	if (!strcmp(line, "environment"))
		return add_variable(s, rest);
	if (!strcmp(line, "allow"))
		return add_allowed(s, rest);
	if (strcmp(line, "limit_ms"))
		return "unknown directive";
	s->limit_ms = number(rest, 1, MAX_LIMIT_MS);
	return s->limit_ms < 0 ? "expected a number of ms from 1 to 86400000" : NULL;
}

int script_parse(struct script *s, char *text, char *error, size_t size)
{
	const char *wrong;
	char *end, *copy;
	int line = 0;

	memset(s, 0, sizeof(*s));
	s->limit_ms = DEFAULT_LIMIT_MS;
	for (; *text; text = end + 1) {
		line++;
		end = strchr(text, '\n');
		if (!end) {
			snprintf(error, size, "line %d is cut off: it has no newline", line);
			return -1;
		}
		*end = '\0';
		copy = strdup(text); /* for the message: the line itself is cut */
		wrong = copy ? directive(s, text) : "there is not enough memory";
		if (wrong)
			snprintf(error, size, "line %d: \"%.200s\": %s", line, copy ? copy : "",
				 wrong);
		free(copy);
		if (wrong)
			return -1;
	}
	if (!s->nr_arguments || !*s->arguments[0]) {
		snprintf(error, size, "there is no program to run: no line begins with argument");
		return -1;
	}
	return 0;
}

int script_add_environment(struct script *s, char *list, char *error, size_t size)
{
	char *pair, *rest = list;
	const char *wrong = NULL;

	if (!strcmp(list, "-"))
		return 0;
	while (!wrong && (pair = strsep(&rest, ","))) {
		wrong = add_variable(s, pair);
		if (!wrong && s->positional)
			wrong = add_argument(s, strchr(pair, '=') + 1);
		if (wrong)
			snprintf(error, size, "environment: \"%.200s\": %s", pair, wrong);
	}
	return wrong ? -1 : 0;
}

bool script_allows(const struct script *s, bool signal, int code)
{
	int i;

	if (!signal && !code)
		return true;
	for (i = 0; i < s->nr_allowed; i++)
		if (s->allowed[i].signal == signal && s->allowed[i].code == code)
			return true;
	return false;
}
