/* SPDX-License-Identifier: GPL-2.0 */
/* Suspend that goes as far as freezing every task, and thaws them again. */
#ifndef KTEARDOWN_SUSPEND_H
#define KTEARDOWN_SUSPEND_H

#include "workload.h"

/*
 * Once in setup(): stop after the freezer (pm_test), without its 5 s delay,
 * without syncing file systems, as suspend-to-idle where offered.
 * 0, or wl_fail()'s value.
 */
int suspend_prepare(struct trial *t);

/*
 * Freeze and thaw once; the calling task is the only one of user space that
 * goes on running meanwhile. Returns ns of the whole call, or -errno where the
 * kernel gave up: -EBUSY when a task refused to freeze (after 20 s).
 */
int64_t suspend_once(void);

/* In cleanup(): let a later suspend be a real one again. */
void suspend_restore(void);

/*
 * Let later suspends keep everything frozen for window_s of the clock's seconds.
 * The kernel does that with mdelay(), and under emulation on a loaded host its idea
 * of a second was seen to be 0.05 to 3.5 of the clock's; a window shorter than the
 * pauses that the host imposes proves nothing. So: first see how long a second is.
 * Call it where nobody is there to be frozen. 0, or wl_fail()'s value.
 */
int suspend_keep_frozen(struct trial *t, int64_t window_s);

#endif
