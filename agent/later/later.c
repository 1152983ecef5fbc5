// SPDX-License-Identifier: GPL-2.0
/*
 * Waits after the stretch of each repetition, so that the lab can count what the kernel does later:
 * RCU callbacks, work items, and kfree_rcu(), which may wait for 5 s. QEMU's plugin counts between
 * the calls of the functions later_*(). In the second part a quiet guest does next to nothing.
 */
#include "core/agent.h"

#define LATER_MS 6000
#define QUIET_MS 100

#define MARK(name)                                                                                 \
	void later_##name(void);                                                                   \
	__attribute__((noinline)) void later_##name(void)                                          \
	{                                                                                          \
		__asm__ volatile("");                                                              \
	}

MARK(begin)
MARK(quiet)
MARK(end)

static bool waited;

static void wait_for_later_work(void)
{
	later_begin();
	sleep_ms(LATER_MS);
	later_quiet();
	sleep_ms(QUIET_MS);
	later_end();
}

void counts_end(void)
{
	wait_for_later_work();
	waited = true;
}

/* The stretch may be all of run(), which does not call wl_profile_end(). */
void counts_report(void)
{
	if (!waited)
		wait_for_later_work();
	waited = false;
}
