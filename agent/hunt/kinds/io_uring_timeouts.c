// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ring.h"

#include <linux/time_types.h>

static void prepare(void)
{
	ring_make(1);
}

static void add(int64_t i)
{
	struct __kernel_timespec when = {1000, i};
	struct io_uring_sqe timeout = {.opcode = IORING_OP_TIMEOUT,
				       .fd = -1,
				       .addr = (uintptr_t)&when,
				       .len = 1,
				       .user_data = i};

	ring_submit(&timeout);
}

static void remove_one(int64_t i)
{
	struct io_uring_sqe cancel = {.opcode = IORING_OP_TIMEOUT_REMOVE, .fd = -1, .addr = i};

	ring_submit(&cancel);
}

KIND(io_uring_timeouts, "io_uring", "timeout of one io_uring, in flight", .shape = OF_ONE,
     .limit = "memory", .timers = true, .needs = "CONFIG_IO_URING", .prepare = prepare, .add = add,
     .remove = remove_one, RING_CLOSED);
