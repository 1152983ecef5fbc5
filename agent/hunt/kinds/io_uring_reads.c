// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ring.h"

static int ends[2];
static char *buffer;

static void prepare(void)
{
	MUST(pipe(ends));
	buffer = array(1);
	ring_make(1);
}

static void add(int64_t i)
{
	struct io_uring_sqe request = {.opcode = IORING_OP_READ,
				       .fd = ends[0],
				       .addr = (uintptr_t)(buffer + i),
				       .len = 1,
				       .user_data = i};

	ring_submit(&request);
}

static void remove_one(int64_t i)
{
	struct io_uring_sqe cancel = {.opcode = IORING_OP_ASYNC_CANCEL, .fd = -1, .addr = i};

	ring_submit(&cancel);
}

KIND(io_uring_reads, "io_uring", "read request of one empty pipe, in flight", .shape = ON_ONE,
     .limit = "memory", .needs = "CONFIG_IO_URING", .prepare = prepare, .add = add,
     .remove = remove_one, RING_CLOSED);
