// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"

static void add(int64_t i)
{
	struct sembuf up = {.sem_op = 1, .sem_flg = SEM_UNDO};

	ids[i] = MUST(semget(IPC_PRIVATE, 1, 0600));
	MUST(semop(ids[i], &up, 1));
}

static void remove_one(int64_t i)
{
	MUST(semctl(ids[i], 0, IPC_RMID));
}

KIND(sem_undo_sets, "ipc", "semaphore set with an undo of one process", .shape = OF_ONE,
     .limit = "semmni", .exit = true, .prepare = ipc_prepare, .add = add, .remove = remove_one,
     .left = sem_left);
