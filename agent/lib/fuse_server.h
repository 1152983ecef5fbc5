/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A FUSE file system with one file, whose server answers a FLUSH only when a certain
 * process has exited, or after a delay. So close(), and therefore the exit of every task
 * that has the file open, waits for user space, and that may wait for another exit.
 */
#ifndef KTEARDOWN_FUSE_SERVER_H
#define KTEARDOWN_FUSE_SERVER_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#define FUSE_FOLDER "/fuse"
#define FUSE_FILE FUSE_FOLDER "/file"

/*
 * Mounts it and starts its server, a child of the caller. *key is in shared memory; it is
 * read when the first FLUSH comes. If key is NULL, each FLUSH is answered after delay_ns.
 * Returns the server's pid, or -errno.
 */
pid_t fuse_start(const _Atomic pid_t *key, int64_t delay_ns);
/* Kills the server, which fails all requests that wait for it, and unmounts. Does not reap. */
void fuse_stop(pid_t server);

#endif
