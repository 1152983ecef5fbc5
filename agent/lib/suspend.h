/* SPDX-License-Identifier: GPL-2.0 */
/* A suspend that freezes every task, goes as far as asked, and thaws them again. */
#ifndef KTEARDOWN_SUSPEND_H
#define KTEARDOWN_SUSPEND_H

#include "workload.h"

/*
 * Call this once in setup(). A suspend then turns back at a level of pm_test: after the
 * freezer, or as late as "platform", before the CPUs would sleep. It has no delay of 5 s,
 * does not sync file systems, and is a suspend-to-idle if the kernel offers it. Returns 0,
 * or wl_fail()'s value.
 */
int suspend_prepare(struct trial *t, const char *level);

/*
 * Suspends and resumes once; in user space only the calling task runs meanwhile.
 * Returns the time of the whole call in ns, or -errno if the kernel gave up: -EBUSY if a
 * task refused to freeze (after 20 s).
 */
int64_t suspend_once(void);

/* Call this in cleanup(): a later suspend is a complete one again. */
void suspend_restore(void);

/*
 * Makes later suspends keep all tasks frozen for window_s seconds of the clock. The kernel
 * waits with mdelay(), and under emulation on a loaded host a second of mdelay() was seen
 * to last 0.05 to 3.5 seconds of the clock. A window that is shorter than the pauses that
 * the host imposes proves nothing, so this function measures a second first. Call it while
 * there are no tasks to freeze. Returns 0, or wl_fail()'s value.
 */
int suspend_keep_frozen(struct trial *t, int64_t window_s);

#endif
