// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/forks.h"
#include "hunt/lib/threads.h"

#include <sys/prctl.h>

/*
 * With a second task on its memory, a process has more tasks than the CPU of the guest, so that
 * its concurrency IDs (mm_cid) belong to CPUs from then on. The task is a process of its own, as
 * after vfork(): it is in no list of threads.
 */
static int second(void *unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	wait_to_be_killed();
}

static void share(int64_t i)
{
	static char stack[THREAD_STACK];

	(void)i;
	MUST(clone(second, stack + sizeof(stack), CLONE_VM, NULL));
}

static void make(void)
{
	forks_make(share);
}

static void stay(int64_t i)
{
	(void)i;
	if (!child(0, true))
		wait_to_be_killed();
}

KIND(memory_shared_beside, "processes", "process whose memory another one shares, beside others",
     .shape = OF_ONE, .limit = "nproc", FORKS_KILLED, .make = make,
     .resident = "other process, which sleeps", .residents_limit = "nproc", .stay = stay);
