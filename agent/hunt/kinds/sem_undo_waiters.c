// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"
#include "hunt/lib/waiters.h"

static int id;

static void up(int64_t i)
{
	struct sembuf op = {.sem_op = 1, .sem_flg = SEM_UNDO};

	(void)i;
	MUST(semop(id, &op, 1));
}

static void wait_for_it(int64_t i)
{
	struct sembuf op = {.sem_num = 1, .sem_op = -1, .sem_flg = SEM_UNDO};

	(void)i;
	semop(id, &op, 1);
}

static void make(void)
{
	id = MUST(semget(IPC_PRIVATE, 2, 0600));
	waiters_make(up, wait_for_it);
}

KIND(sem_undo_waiters, "ipc",
     "process with an undo of one semaphore set that waits for another semaphore of it",
     .shape = ON_ONE, .limit = "nproc", .prepare = ipc_prepare, .make = make, WAITERS_KILLED);
