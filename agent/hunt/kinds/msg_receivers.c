// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"
#include "hunt/lib/waiters.h"

static int id;

static void wait_for_it(int64_t i)
{
	struct {
		long type;
		char text[8];
	} message;

	msgrcv(id, &message, sizeof(message.text), i + 1, 0);
}

static void make(void)
{
	id = MUST(msgget(IPC_PRIVATE, 0600));
	waiters_make(NULL, wait_for_it);
}

KIND(msg_receivers, "ipc", "process that waits for a message of one queue (System V)",
     .shape = ON_ONE, .limit = "nproc", .prepare = ipc_prepare, .make = make, WAITERS_KILLED);
