/* SPDX-License-Identifier: GPL-2.0 */
/* The state of single tasks, and waiting for a state with a time limit. */
#ifndef KTEARDOWN_TASKS_H
#define KTEARDOWN_TASKS_H

#include <sys/types.h>

#include "workload.h"

/* The letter of the task's state in /proc: R, S, D, T, t, Z, ...; 0 if the task does not exist. */
char task_state(pid_t tid);
/* False if the task is not in this state within the limit. */
bool task_wait_state(pid_t tid, char state, int64_t limit_ms);
/* The wait status of a child, or -1 if it does not exit within the limit. */
int task_reap(pid_t pid, int64_t limit_ms);
/* Reaps a process group; false if tasks are left after the limit. */
bool group_reap(pid_t leader, int64_t limit_ms);

#endif
