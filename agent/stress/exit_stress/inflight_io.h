/* SPDX-License-Identifier: GPL-2.0 */
/* Requests that are in flight until the task that made them exits, which has to cancel them. */
#ifndef KTEARDOWN_INFLIGHT_IO_H
#define KTEARDOWN_INFLIGHT_IO_H

/* A poll, by io_submit(), of a pipe to which nothing is written. 0, or -errno. */
int inflight_aio(int fd);
/* A read and a poll of that pipe, by io_uring. 0, or -errno. */
int inflight_uring(int fd);

#endif
