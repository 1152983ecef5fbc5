/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's detector of tasks that wait uninterruptibly for too long. */
#ifndef KTEARDOWN_HUNGTASK_H
#define KTEARDOWN_HUNGTASK_H

#include "workload.h"

/*
 * From now on the kernel reports every task that waits for this long, without a limit on
 * the number of reports. False if the kernel has no detector.
 */
bool hungtask_after(int64_t seconds);
/* Restores the values from before. */
void hungtask_restore(void);
/* True if this message of the kernel's log is the first line of such a report. */
bool hungtask_report(const char *text);

#endif
