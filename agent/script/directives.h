/* SPDX-License-Identifier: GPL-2.0 */
/* What to run: the directives of /script/NAME, as docs/formats.md describes them. */
#ifndef KTEARDOWN_SCRIPT_DIRECTIVES_H
#define KTEARDOWN_SCRIPT_DIRECTIVES_H

#include "workload.h"

#define ARGUMENTS_MAX 1000
#define VARIABLES_MAX 1000
#define ALLOWED_MAX 64

struct script {
	/* Both end with NULL, as execve() wants them. The strings are parts of the texts read. */
	char *arguments[ARGUMENTS_MAX + 1];
	char *variables[VARIABLES_MAX + 1];
	int nr_arguments, nr_variables;
	bool positional;
	struct {
		bool signal;
		int code;
	} allowed[ALLOWED_MAX];
	int nr_allowed;
	int64_t limit_ms;
};

/*
 * Reads the directives; the text is cut into the strings of the script. 0, or -1 with a message
 * that names the line in error (size bytes).
 */
int script_parse(struct script *s, char *text, char *error, size_t size);
/*
 * Adds the trial's own variables, "NAME=VALUE,NAME=VALUE" or "-" for none, which replace those of
 * the directives; with the directive positional their values become arguments. Cuts the text.
 */
int script_add_environment(struct script *s, char *list, char *error, size_t size);
/* Whether it is no failure that the script ended so. */
bool script_allows(const struct script *s, bool signal, int code);

#endif
