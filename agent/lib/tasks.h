/* SPDX-License-Identifier: GPL-2.0 */
/* Single tasks: what the kernel says that they are, and waiting for it with a limit. */
#ifndef KTEARDOWN_TASKS_H
#define KTEARDOWN_TASKS_H

#include <sys/types.h>

#include "workload.h"

/* The letter that /proc has for a task's state: R, S, D, T, t, Z, ...; 0: there is no such task. */
char task_state(pid_t tid);
/* False where the task is not in this state within the limit. */
bool task_wait_state(pid_t tid, char state, int64_t limit_ms);
/* The wait status of a child, or -1 where it does not end within the limit. */
int task_reap(pid_t pid, int64_t limit_ms);
/* Reap a process group; false where it is not gone within the limit. */
bool group_reap(pid_t leader, int64_t limit_ms);

#endif
