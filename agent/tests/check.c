// SPDX-License-Identifier: GPL-2.0
/* What every program of tests needs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/test.h"

static int checks, failures;

void check(bool ok, const char *file, int line, const char *condition)
{
	checks++;
	if (ok)
		return;
	failures++;
	fprintf(stderr, "%s:%d: failed: %s\n", file, line, condition);
}

void check_text(const char *is, const char *expected, const char *file, int line)
{
	checks++;
	if (!strcmp(is, expected))
		return;
	failures++;
	fprintf(stderr, "%s:%d: expected\n%s\ngot\n%s\n", file, line, expected, is);
}

int checks_end(void)
{
	printf("%d checks, %d failed\n", checks, failures);
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
