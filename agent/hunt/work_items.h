/* SPDX-License-Identifier: GPL-2.0 */
/* How many work items were queued, on all CPUs: perf counts a tracepoint. */
#ifndef KTEARDOWN_HUNT_WORK_ITEMS_H
#define KTEARDOWN_HUNT_WORK_ITEMS_H

#include <stdint.h>

void work_items_start(void);
/* Since work_items_start(); -1 if the kernel does not count them. */
int64_t work_items_end(void);

#endif
