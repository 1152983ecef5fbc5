/* SPDX-License-Identifier: GPL-2.0 */
/* io_uring: threads of the kernel that run in the cgroup of the process for which they work. */
#ifndef KTEARDOWN_RINGS_H
#define KTEARDOWN_RINGS_H

/*
 * Each makes a ring that belongs to the calling process until it exits. 0 or -errno.
 */

/* A thread of the kernel on CPU 0 polls the ring all the time. */
int ring_polled(void);
/* Long reads, one after the other, by at most two workers of the kernel on CPU 0. */
int ring_reads(void);
/* Requests that complete only when they are cancelled, which the task does when it exits. */
int ring_waits(void);

/* One system call that stays in the kernel for some periods of a small quota. */
void read_for_long(void);

#endif
