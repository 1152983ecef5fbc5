// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"

static void add(int64_t i)
{
	struct {
		long type;
		char text[8];
	} message = {1, "x"};

	ids[i] = MUST(msgget(IPC_PRIVATE, 0600));
	MUST(msgsnd(ids[i], &message, sizeof(message.text), 0));
}

static void remove_one(int64_t i)
{
	MUST(msgctl(ids[i], IPC_RMID, NULL));
}

KIND(msg_queues, "ipc", "message queue (System V) with a message; at exit, its namespace ends",
     .shape = OF_ONE, .limit = "msgmni", .exit = true, .prepare = ipc_prepare, .add = add,
     .remove = remove_one, .left = msg_left);
