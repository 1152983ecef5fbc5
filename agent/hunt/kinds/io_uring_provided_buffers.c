// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ring.h"

static char *memory;

static void prepare(void)
{
	memory = array(16);
	ring_make(1);
}

static void add(int64_t i)
{
	struct io_uring_sqe request = {.opcode = IORING_OP_PROVIDE_BUFFERS,
				       .fd = 1,
				       .addr = (uintptr_t)(memory + i * 16),
				       .len = 16,
				       .off = i};

	ring_submit(&request);
}

KIND(io_uring_provided_buffers, "io_uring", "provided buffer of one group of an io_uring",
     .shape = OF_ONE, .limit = "memory", .most = 65535, .needs = "CONFIG_IO_URING",
     .prepare = prepare, .add = add, RING_CLOSED);
