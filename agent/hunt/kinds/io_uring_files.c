// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/names.h"
#include "hunt/lib/ring.h"

static void make(void)
{
	int32_t *fds = array(sizeof(*fds));
	int64_t i;

	for (i = 0; i < nr_objects; i++)
		fds[i] = make_file("file");
	ring_make(1);
	ring_register(IORING_REGISTER_FILES, fds, nr_objects);
	for (i = 0; i < nr_objects; i++)
		close(fds[i]);
}

static void release(void)
{
	ring_register(IORING_UNREGISTER_FILES, NULL, 0);
}

KIND(io_uring_files, "io_uring", "registered file of one io_uring", .shape = OF_ONE,
     .limit = "nofile", .needs = "CONFIG_IO_URING", .exit = true, .call = "unregister",
     .make = make, .release = release);
