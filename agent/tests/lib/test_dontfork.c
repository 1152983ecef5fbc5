// SPDX-License-Identifier: GPL-2.0
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/dontfork.h"
#include "tests/test.h"

/* What a child reads from the byte: its value, or -1 if the memory does not exist. */
static int seen_by_child(const char *byte)
{
	int ends[2], status = -1;
	char is;

	if (pipe(ends))
		return -1;
	if (!fork()) {
		/*
		 * If the memory does not exist, write() fails, while the child itself would crash.
		 */
		_exit(write(ends[1], byte, 1) != 1);
	}
	close(ends[1]);
	if (read(ends[0], &is, 1) == 1)
		status = is;
	close(ends[0]);
	return status;
}

void test_dontfork(void)
{
	char *memory = NULL;
	size_t size = 0, i;

	CHECK(!dontfork_grow((void **)&memory, &size, 1));
	CHECK(size >= 1 && memory[0] == 0 && memory[size - 1] == 0);
	for (i = 0; i < 8; i++) {
		size_t before = size;

		memset(memory, (int)i + 1, size);
		CHECK(!dontfork_grow((void **)&memory, &size, size));
		CHECK(size == before);
		CHECK(!dontfork_grow((void **)&memory, &size, size + 1));
		CHECK(size > before && memory[before - 1] == (char)(i + 1) && memory[before] == 0);
	}
	CHECK(seen_by_child("x") == 'x');
	CHECK(seen_by_child(memory) == -1);
	CHECK(seen_by_child(memory + size - 1) == -1);
	dontfork_free((void **)&memory, &size);
	CHECK(!memory && !size);
	dontfork_free((void **)&memory, &size);
}
