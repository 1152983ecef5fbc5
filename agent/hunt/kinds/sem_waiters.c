// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"
#include "hunt/lib/waiters.h"

static int id;

static void wait_for_it(int64_t i)
{
	struct sembuf op = {.sem_op = -1};

	(void)i;
	semop(id, &op, 1);
}

static void make(void)
{
	id = MUST(semget(IPC_PRIVATE, 1, 0600));
	waiters_make(NULL, wait_for_it);
}

static void release(void)
{
	MUST(semctl(id, 0, IPC_RMID));
}

KIND(sem_waiters, "ipc", "process that waits for one semaphore (System V)", .shape = ON_ONE,
     .limit = "nproc", .call = "semctl(IPC_RMID)", .prepare = ipc_prepare, .make = make,
     .remove = waiters_kill_one, .release = release);
