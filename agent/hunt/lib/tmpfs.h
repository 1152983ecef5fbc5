/* SPDX-License-Identifier: GPL-2.0 */
/* A tmpfs of its own, which is the working directory, or is to be unmounted. */
#ifndef KTEARDOWN_HUNT_TMPFS_H
#define KTEARDOWN_HUNT_TMPFS_H

#include "hunt/kind.h"

#include <sched.h>
#include <sys/mount.h>

static int tmpfs_outside;

static inline void tmpfs_prepare(void)
{
	new_namespaces(CLONE_NEWNS);
	tmpfs_outside = MUST(open(".", O_PATH | O_CLOEXEC));
	MUST(mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL));
	MUST(mkdir("mount", 0700));
	MUST(mount("kind", "mount", "tmpfs", 0, "nr_inodes=0"));
	MUST(chdir("mount"));
}

static inline void tmpfs_unmount(void)
{
	MUST(fchdir(tmpfs_outside));
	MUST(umount("mount"));
}

/* As the arguments of KIND(). */
#define TMPFS_UNMOUNTED                                                                            \
	.shape = OF_ONE, .limit = "memory", .exit = true, .call = "umount()",                      \
	.prepare = tmpfs_prepare, .release = tmpfs_unmount

#endif
