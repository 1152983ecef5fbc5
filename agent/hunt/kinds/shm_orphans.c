// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/ipc.h"

static pid_t creator;

/* The segments end with the process that made them, which is what this setting is for. */
static void make(void)
{
	int64_t i;

	MUST(put_file("/proc/sys/kernel/shm_rmid_forced", "1") ? -1 : 0);
	ready_make();
	creator = child(0, true);
	if (creator)
		return ready_wait();
	for (i = 0; i < nr_objects; i++)
		MUST(shmget(IPC_PRIVATE, 4096, 0600));
	ready_say();
	wait_to_be_killed();
}

static void release(void)
{
	MUST(kill(creator, SIGKILL));
	MUST(waitpid(creator, NULL, 0));
}

KIND(shm_orphans, "ipc", "shared memory segment (System V) that ends with the process that made it",
     .shape = OF_ONE, .limit = "shmmni", .call = "kill() and wait()", .prepare = ipc_prepare,
     .make = make, .release = release, .left = shm_left);
