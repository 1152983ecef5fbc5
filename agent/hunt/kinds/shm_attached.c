// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"

static void **at;

static void prepare(void)
{
	ipc_prepare();
	at = array(sizeof(*at));
}

static void add(int64_t i)
{
	int id = MUST(shmget(IPC_PRIVATE, 4096, 0600));

	at[i] = shmat(id, NULL, 0);
	MUST((long)at[i]);
	MUST(shmctl(id, IPC_RMID, NULL));
}

static void remove_one(int64_t i)
{
	MUST(shmdt(at[i]));
}

KIND(shm_attached, "ipc",
     "shared memory segment (System V) that is attached and marked for removal", .shape = OF_ONE,
     .limit = "shmmni", .exit = true, .prepare = prepare, .add = add, .remove = remove_one,
     .left = shm_left);
