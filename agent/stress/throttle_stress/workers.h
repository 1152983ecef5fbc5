/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Workers of io_uring that are out of quota must not keep what others need: a file, the next
 * request, an execve(). Each is a case, about the cgroup of limits.h: NULL if all is right, or
 * what is wrong.
 */
#ifndef KTEARDOWN_WORKERS_H
#define KTEARDOWN_WORKERS_H

const char *workers_hashed(void);
const char *workers_idle(void);
const char *workers_execs(void);

#endif
