// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"

static void **at;
static int id;

static void prepare(void)
{
	ipc_prepare();
	at = array(sizeof(*at));
	id = MUST(shmget(IPC_PRIVATE, 4096, 0600));
	MUST((long)shmat(id, NULL, 0));
	MUST(shmctl(id, IPC_RMID, NULL));
}

static void add(int64_t i)
{
	at[i] = shmat(id, NULL, 0);
	MUST((long)at[i]);
}

static void remove_one(int64_t i)
{
	MUST(shmdt(at[i]));
}

KIND(shm_attachments, "ipc", "mapping of one shared memory segment (System V)", .shape = ON_ONE,
     .limit = "max_map_count", .exit = true, .prepare = prepare, .add = add, .remove = remove_one);
