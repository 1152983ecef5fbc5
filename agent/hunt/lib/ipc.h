/* SPDX-License-Identifier: GPL-2.0 */
/* System V IPC and POSIX message queues, in a namespace of their own. */
#ifndef KTEARDOWN_HUNT_IPC_H
#define KTEARDOWN_HUNT_IPC_H

#include "hunt/kind.h"

#include <sched.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

static int32_t *ids;

/* A new namespace has the limits that it has by default. */
static inline void ipc_prepare(void)
{
	new_namespaces(CLONE_NEWIPC);
	put_file("/proc/sys/kernel/shmmni", "32768");
	put_file("/proc/sys/kernel/msgmni", "32768");
	put_file("/proc/sys/kernel/sem", "32000 1024000000 500 32768");
	put_file("/proc/sys/fs/mqueue/queues_max", "1000000");
	put_file("/proc/sys/fs/mqueue/msg_max", "65536");
	ids = array(sizeof(*ids));
}

static inline int64_t shm_left(void)
{
	struct shm_info info;

	MUST(shmctl(0, SHM_INFO, (struct shmid_ds *)&info));
	return info.used_ids;
}

static inline int64_t msg_left(void)
{
	struct msginfo info;

	MUST(msgctl(0, MSG_INFO, (struct msqid_ds *)&info));
	return info.msgpool;
}

static inline int64_t sem_left(void)
{
	struct seminfo info;

	MUST(semctl(0, 0, SEM_INFO, &info));
	return info.semusz;
}

#endif
