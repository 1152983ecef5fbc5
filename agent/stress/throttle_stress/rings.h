/* SPDX-License-Identifier: GPL-2.0 */
/* io_uring: threads of the kernel that run in the cgroup of the process for which they work. */
#ifndef KTEARDOWN_RINGS_H
#define KTEARDOWN_RINGS_H

#include <stdbool.h>

/*
 * Each makes a ring that belongs to the calling process until it exits. 0 or -errno.
 */

/* A thread of the kernel on CPU 0 polls the ring all the time. */
int ring_polled(void);
/* Long reads, one after the other, by at most two workers of the kernel on CPU 0. */
int ring_reads(void);
/* Requests that complete only when they are cancelled, which the task does when it exits. */
int ring_waits(void);

/*
 * A ring that processes share which are started later, and a file in memory. 0 or -errno. One
 * process at a time submits a request.
 */
int ring_share(void);
void ring_unshare(void);

/* Many large writes to the file, one after the other: a quarter of a second of CPU time. */
int ring_writes(void);
/* One byte, after all writes to the file that a worker has begun. */
int ring_write_once(void);
bool ring_wrote_once(void);

/* A long read, also a quarter of a second; when it has completed, its worker is idle. */
int ring_read_once(void);
bool ring_read_done(void);

/* One system call that stays in the kernel for some periods of a small quota. */
void read_for_long(void);

#endif
