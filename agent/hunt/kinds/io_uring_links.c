// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ring.h"

#include <poll.h>

/* One chain: the first waits for a pipe that stays empty, all others wait for the one before. */
static void make(void)
{
	struct io_uring_sqe request = {.opcode = IORING_OP_POLL_ADD, .flags = IOSQE_IO_LINK};
	int ends[2];
	int64_t i;

	MUST(pipe(ends));
	ring_make(nr_objects);
	request.fd = ends[0];
	request.poll32_events = POLLIN;
	for (i = 0; i < nr_objects; i++) {
		if (i == nr_objects - 1)
			request.flags = 0;
		ring_put(&request);
		request = (struct io_uring_sqe){.opcode = IORING_OP_NOP, .flags = IOSQE_IO_LINK};
	}
	MUST(syscall(SYS_io_uring_enter, ring.fd, nr_objects, 0, 0, NULL, 0));
}

KIND(io_uring_links, "io_uring", "request of one chain that waits for the one before it",
     .shape = OF_ONE, .limit = "memory", .most = 32768, .needs = "CONFIG_IO_URING", .make = make,
     RING_CLOSED);
