/* SPDX-License-Identifier: GPL-2.0 */
/*
 * process_mrelease() of processes that were killed, as Android's low-memory killer does it:
 * the caller frees their memory, and does not wait until they run.
 */
#ifndef KTEARDOWN_MRELEASE_H
#define KTEARDOWN_MRELEASE_H

#include <sys/types.h>

#include "workload.h"

/* Opens a pidfd of a process that lives. 0, or wl_fail()'s value. */
int mrelease_open(struct trial *t, pid_t pid);
/*
 * Kills this process group and frees the memory of all these processes, one after the other.
 * Android's killer runs as SCHED_FIFO, priority 1; so does the caller meanwhile, or on one CPU
 * the processes would exit before it could free anything. The metric mrelease_ns is the time of
 * each call. 0, or wl_fail()'s value.
 */
int mrelease_kill(struct trial *t, pid_t group);
/* Closes the pidfds. */
void mrelease_close(void);

#endif
