// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"
#include "hunt/lib/names.h"

#include <mqueue.h>

static void add(int64_t i)
{
	struct mq_attr sizes = {.mq_maxmsg = 1, .mq_msgsize = 8};

	MUST(close(MUST(syscall(SYS_mq_open, name_of(i), O_RDWR | O_CREAT, 0600, &sizes))));
}

static void remove_one(int64_t i)
{
	MUST(syscall(SYS_mq_unlink, name_of(i)));
}

KIND(mqueues, "ipc", "POSIX message queue; at exit, its namespace ends", .shape = OF_ONE,
     .limit = "mqueue_queues", .needs = "CONFIG_POSIX_MQUEUE", .exit = true, .prepare = ipc_prepare,
     .add = add, .remove = remove_one);
