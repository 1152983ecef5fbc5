/* SPDX-License-Identifier: GPL-2.0 */
/* Mounts below m, a tmpfs in a mount namespace of the owner's own that receives nothing. */
#ifndef KTEARDOWN_HUNT_MOUNTS_H
#define KTEARDOWN_HUNT_MOUNTS_H

#include "hunt/kind.h"

#include <sched.h>
#include <sys/mount.h>

static inline void mounts_prepare(void)
{
	new_namespaces(CLONE_NEWNS);
	MUST(mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL));
	MUST(mkdir("m", 0700));
	MUST(mount("m", "m", "tmpfs", 0, "nr_inodes=0"));
	MUST(mkdir("m/from", 0700));
}

/* The folder m/NUMBER, which is made if it does not exist. */
static inline const char *mounts_folder(int64_t i)
{
	static char path[32];

	snprintf(path, sizeof(path), "m/%lld", (long long)i);
	if (mkdir(path, 0700) && errno != EEXIST)
		owner_failed("mkdir()");
	return path;
}

static inline void mounts_bind(const char *from, const char *to)
{
	MUST(mount(from, to, NULL, MS_BIND, NULL));
}

static inline void mounts_flags(const char *path, unsigned long flags)
{
	MUST(mount(NULL, path, NULL, flags, NULL));
}

/* For add(): a bind mount of m/from. */
static inline void mounts_add(int64_t i)
{
	mounts_bind("m/from", mounts_folder(i));
}

/* For remove(): one of those at m/NUMBER. */
static inline void mounts_remove(int64_t i)
{
	MUST(umount2(mounts_folder(i), 0));
}

/* For release(): the whole tree. */
static inline void mounts_release(void)
{
	MUST(umount2("m", MNT_DETACH));
}

/* Makes m/peer a mount of its own that is shared. */
static inline void mounts_shared_peer(void)
{
	mounts_prepare();
	MUST(mkdir("m/peer", 0700));
	mounts_bind("m/peer", "m/peer");
	mounts_flags("m/peer", MS_SHARED);
}

#endif
