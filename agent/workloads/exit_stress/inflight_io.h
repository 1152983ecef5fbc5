/* SPDX-License-Identifier: GPL-2.0 */
/* Requests that are under way until the end of who made them: exit has to cancel them. */
#ifndef KTEARDOWN_INFLIGHT_IO_H
#define KTEARDOWN_INFLIGHT_IO_H

/* A poll of a pipe into which nobody writes, by io_submit(). 0, or -errno. */
int inflight_aio(int fd);
/* A read of that pipe and a poll of it, by io_uring. 0, or -errno. */
int inflight_uring(int fd);

#endif
