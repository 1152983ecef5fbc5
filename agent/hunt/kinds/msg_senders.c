// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"
#include "hunt/lib/waiters.h"

static int id;
static struct {
	long type;
	char text[1024];
} message = {.type = 1};

static void wait_for_it(int64_t i)
{
	(void)i;
	msgsnd(id, &message, sizeof(message.text), 0);
}

static void make(void)
{
	id = MUST(msgget(IPC_PRIVATE, 0600));
	while (!msgsnd(id, &message, sizeof(message.text), IPC_NOWAIT))
		;
	waiters_make(NULL, wait_for_it);
}

static void release(void)
{
	MUST(msgctl(id, IPC_RMID, NULL));
}

KIND(msg_senders, "ipc", "process that waits for room in one message queue (System V)",
     .shape = ON_ONE, .limit = "nproc", .call = "msgctl(IPC_RMID)", .prepare = ipc_prepare,
     .make = make, .remove = waiters_kill_one, .release = release);
