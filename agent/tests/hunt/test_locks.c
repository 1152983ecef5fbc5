// SPDX-License-Identifier: GPL-2.0
#include "hunt/locks.h"

#include <string.h>

#include "tests/test.h"

/*
 * Lines of 6.12.117, in which a process made 576 open files with a flock, and of 7.2.12, in which
 * two processes freed pages. The tests run in the folder of the agent.
 */
#define RECORDED "tests/hunt/lock_stat.txt"

/* The locks of a file as a record has them. */
static const char *locks_of(FILE *f)
{
	struct lock_line locks[LOCKS_MOST];
	static char text[LOCKS_TEXT];

	locks_text(locks, locks_read(f, locks), text, sizeof(text));
	return text;
}

static FILE *file_of(const char *text)
{
	FILE *f = tmpfile();

	fputs(text, f);
	rewind(f);
	return f;
}

/* The recorded line of this name, under another name of the same length. */
static const char *line_as(const char *name, const char *other)
{
	FILE *f = fopen(RECORDED, "r");
	static char line[400];
	char *at = NULL;

	while (!at && fgets(line, sizeof(line), f))
		at = strstr(line, name);
	fclose(f);
	CHECK(at && strlen(name) == strlen(other));
	memcpy(at, other, strlen(other));
	return line;
}

static void recorded(void)
{
	FILE *f = fopen(RECORDED, "r");

	CHECK(f);
	/* The four that were held for longest: no task waits for rcu_read_lock and fs_reclaim. */
	CHECK_TEXT(locks_of(f), "422697430 39140120 writing tasklist_lock\n"
				"2028980 16310 writing &ctx->flc_lock\n"
				"1046970 1840 reading file_rwsem\n"
				"944510 211840 writing ptlock_ptr(ptdesc)");
}

static void names(void)
{
	char text[1000] = "";

	strcat(text, line_as("ptlock_ptr(ptdesc)#2/1", "ptlock_ptr(ptdesc)#2/1"));
	strcat(text, line_as("      &ctx->flc_lock", "ptlock_ptr(ptdesc)#2"));
	/* Of two classes with one name, the one that was held for longest. */
	CHECK_TEXT(locks_of(file_of(text)), "2028980 16310 writing ptlock_ptr(ptdesc)");
	CHECK_TEXT(locks_of(file_of(line_as("file_rwsem-R", "  rcu_node_0"))),
		   "1046970 1840 writing rcu_node_0");
	CHECK_TEXT(locks_of(file_of(line_as("file_rwsem-R", "rcu_callback"))), "");
	CHECK_TEXT(locks_of(file_of(line_as("     &ctx->flc_lock:", "(wq_completion)pool:"))), "");
	CHECK_TEXT(locks_of(file_of("")), "");
	CHECK_TEXT(locks_of(file_of("lock_stat version 0.4\n")), "");
}

void test_locks(void)
{
	recorded();
	names();
}
