/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's detector of tasks that wait uninterruptibly for too long. */
#ifndef KTEARDOWN_HUNGTASK_H
#define KTEARDOWN_HUNGTASK_H

#include "workload.h"

/* From now on it reports, without end, who waits for this long. False: this kernel has none. */
bool hungtask_after(int64_t seconds);
/* As it was before. */
void hungtask_restore(void);
/* Is this message of the kernel's log the first line of such a report? */
bool hungtask_report(const char *text);

#endif
