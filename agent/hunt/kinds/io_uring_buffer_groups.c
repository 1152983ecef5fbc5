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
				       .buf_group = i};

	ring_submit(&request);
}

KIND(io_uring_buffer_groups, "io_uring", "group of provided buffers of one io_uring, with a buffer",
     .shape = OF_ONE, .limit = "memory", .most = 65535, .needs = "CONFIG_IO_URING",
     .prepare = prepare, .add = add, RING_CLOSED);
