// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ring.h"

#include <sys/uio.h>

static void make(void)
{
	struct iovec *buffers = array(sizeof(*buffers));
	char *memory = array(4096);
	int64_t i;

	for (i = 0; i < nr_objects; i++) {
		buffers[i].iov_base = memory + i * 4096;
		buffers[i].iov_len = 4096;
	}
	ring_make(1);
	ring_register(IORING_REGISTER_BUFFERS, buffers, nr_objects);
}

static void release(void)
{
	ring_register(IORING_UNREGISTER_BUFFERS, NULL, 0);
}

KIND(io_uring_buffers, "io_uring", "registered buffer of one io_uring", .shape = OF_ONE,
     .limit = "memlock", .most = 16384, .needs = "CONFIG_IO_URING", .exit = true,
     .call = "unregister", .make = make, .release = release);
