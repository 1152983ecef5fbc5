/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A FUSE file system of one file, whose server answers a FLUSH only when a
 * certain process has exited. So close(), and with it the exit of whoever has
 * the file open, waits for user space, and that for another exit.
 */
#ifndef KTEARDOWN_FUSE_SERVER_H
#define KTEARDOWN_FUSE_SERVER_H

#include <stdatomic.h>
#include <sys/types.h>

#define FUSE_FOLDER "/fuse"
#define FUSE_FILE FUSE_FOLDER "/file"

/*
 * Mount it and start its server, a child of the caller. *key is in shared
 * memory, and read when the first FLUSH comes. The server's pid, or -errno.
 */
pid_t fuse_start(const _Atomic pid_t *key);
/* Kill the server, which fails all that wait for it, and unmount. Does not reap. */
void fuse_stop(pid_t server);

#endif
