// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ring.h"

/* The ring of completions is of the least size, all others are put into a list. */
static void prepare(void)
{
	int64_t n = nr_objects;

	nr_objects = 1;
	ring_make(1);
	nr_objects = n;
}

static void add(int64_t i)
{
	struct io_uring_sqe request = {.opcode = IORING_OP_NOP, .user_data = i};

	ring_submit(&request);
}

KIND(io_uring_completions, "io_uring", "completion that did not fit into one io_uring",
     .shape = OF_ONE, .limit = "memory", .needs = "CONFIG_IO_URING", .prepare = prepare, .add = add,
     RING_CLOSED);
