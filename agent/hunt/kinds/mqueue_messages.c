// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"

#include <mqueue.h>

static int queue;

static void prepare(void)
{
	struct mq_attr sizes = {.mq_maxmsg = nr_objects, .mq_msgsize = 8};

	ipc_prepare();
	queue = MUST(syscall(SYS_mq_open, "queue", O_RDWR | O_CREAT, 0600, &sizes));
	MUST(syscall(SYS_mq_unlink, "queue"));
}

static void add(int64_t i)
{
	MUST(syscall(SYS_mq_timedsend, queue, "x", 1, i, NULL));
}

static void release(void)
{
	MUST(close(queue));
}

KIND(mqueue_messages, "ipc", "message of a priority of its own in one POSIX message queue",
     .shape = ON_ONE, .limit = "mqueue_messages", .most = 32768, .needs = "CONFIG_POSIX_MQUEUE",
     .exit = true, .call = "close()", .prepare = prepare, .add = add, .release = release);
