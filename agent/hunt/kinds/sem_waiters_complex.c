// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"
#include "hunt/lib/waiters.h"

static int id;

/* Two semaphores at once: such a waiter is in the queue of the whole set. */
static void wait_for_it(int64_t i)
{
	struct sembuf ops[] = {{.sem_num = 0, .sem_op = -1}, {.sem_num = 1, .sem_op = -1}};

	(void)i;
	semop(id, ops, 2);
}

static void make(void)
{
	id = MUST(semget(IPC_PRIVATE, 2, 0600));
	waiters_make(NULL, wait_for_it);
}

KIND(sem_waiters_complex, "ipc", "process that waits for two semaphores of one set at once",
     .shape = ON_ONE, .limit = "nproc", .prepare = ipc_prepare, .make = make, WAITERS_KILLED);
