// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ring.h"

#include <poll.h>

static int ends[2];

static void prepare(void)
{
	MUST(pipe(ends));
	ring_make(1);
}

static void add(int64_t i)
{
	struct io_uring_sqe poll = {.opcode = IORING_OP_POLL_ADD,
				    .fd = ends[0],
				    .poll32_events = POLLIN,
				    .user_data = i};

	ring_submit(&poll);
}

static void remove_one(int64_t i)
{
	struct io_uring_sqe cancel = {.opcode = IORING_OP_POLL_REMOVE, .fd = -1, .addr = i};

	ring_submit(&cancel);
}

KIND(io_uring_polls, "io_uring", "poll request of one pipe, in flight", .shape = ON_ONE,
     .limit = "memory", .needs = "CONFIG_IO_URING", .prepare = prepare, .add = add,
     .remove = remove_one, RING_CLOSED);
