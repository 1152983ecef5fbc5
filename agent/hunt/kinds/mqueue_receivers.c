// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"
#include "hunt/lib/waiters.h"

#include <mqueue.h>

static int queue;

static void wait_for_it(int64_t i)
{
	char text[8];

	(void)i;
	syscall(SYS_mq_timedreceive, queue, text, sizeof(text), NULL, NULL);
}

static void make(void)
{
	struct mq_attr sizes = {.mq_maxmsg = 1, .mq_msgsize = 8};

	queue = MUST(syscall(SYS_mq_open, "queue", O_RDWR | O_CREAT, 0600, &sizes));
	waiters_make(NULL, wait_for_it);
}

KIND(mqueue_receivers, "ipc", "process that waits for a message of one POSIX message queue",
     .shape = ON_ONE, .limit = "nproc", .needs = "CONFIG_POSIX_MQUEUE", .prepare = ipc_prepare,
     .make = make, WAITERS_KILLED);
