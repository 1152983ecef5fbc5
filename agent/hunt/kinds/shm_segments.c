// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"

static void add(int64_t i)
{
	ids[i] = MUST(shmget(IPC_PRIVATE, 4096, 0600));
}

static void remove_one(int64_t i)
{
	MUST(shmctl(ids[i], IPC_RMID, NULL));
}

KIND(shm_segments, "ipc", "shared memory segment (System V); at exit, its namespace ends",
     .shape = OF_ONE, .limit = "shmmni", .exit = true, .prepare = ipc_prepare, .add = add,
     .remove = remove_one, .left = shm_left);
