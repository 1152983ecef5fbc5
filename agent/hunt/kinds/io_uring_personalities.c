// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ring.h"

static int32_t *personalities;

static void prepare(void)
{
	personalities = array(sizeof(*personalities));
	ring_make(1);
}

static void add(int64_t i)
{
	personalities[i] =
		MUST(syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_PERSONALITY, NULL, 0));
}

static void remove_one(int64_t i)
{
	ring_register(IORING_UNREGISTER_PERSONALITY, NULL, personalities[i]);
}

KIND(io_uring_personalities, "io_uring", "personality of one io_uring", .shape = OF_ONE,
     .limit = "memory", .most = 65534, .needs = "CONFIG_IO_URING", .prepare = prepare, .add = add,
     .remove = remove_one, RING_CLOSED);
