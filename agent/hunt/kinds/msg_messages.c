// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"

static int id;

static void prepare(void)
{
	ipc_prepare();
	id = MUST(msgget(IPC_PRIVATE, 0600));
}

/* Without text: the bytes of a queue are limited, and so is the number of its messages. */
static void add(int64_t i)
{
	long type = 1 + i % 2;

	MUST(msgsnd(id, &type, 0, IPC_NOWAIT));
}

static void release(void)
{
	MUST(msgctl(id, IPC_RMID, NULL));
}

KIND(msg_messages, "ipc", "message in one queue (System V)", .shape = ON_ONE, .limit = "msgmnb",
     .most = 16384, .exit = true, .call = "msgctl(IPC_RMID)", .prepare = prepare, .add = add,
     .release = release, .left = msg_left);
