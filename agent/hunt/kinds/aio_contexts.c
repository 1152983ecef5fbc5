// SPDX-License-Identifier: GPL-2.0
#include "hunt/kind.h"

#include <linux/aio_abi.h>

static aio_context_t *contexts;

static void prepare(void)
{
	contexts = array(sizeof(*contexts));
}

static void add(int64_t i)
{
	MUST(syscall(SYS_io_setup, 1, &contexts[i]));
}

static void remove_one(int64_t i)
{
	MUST(syscall(SYS_io_destroy, contexts[i]));
}

KIND(aio_contexts, "aio", "context of asynchronous requests", .shape = OF_ONE,
     .limit = "aio_max_nr", .needs = "CONFIG_AIO", .exit = true, .prepare = prepare, .add = add,
     .remove = remove_one);
