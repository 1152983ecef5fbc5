// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/mounts.h"

/* A bind mount below m/peer; all are mounted again at m/peer/again, which propagates. */
static void add(int64_t i)
{
	char path[32];

	snprintf(path, sizeof(path), "m/peer/%lld", (long long)i);
	MUST(mkdir(path, 0700));
	mounts_bind("m/from", path);
}

static void make(void)
{
	int64_t i;

	MUST(mkdir("m/peer/again", 0700));
	for (i = 0; i < nr_objects; i++)
		add(i);
	mounts_bind("m/peer", "m/peer/again");
}

static void release(void)
{
	MUST(umount2("m/peer/again", MNT_DETACH));
}

KIND(mounts_peers_below, "mounts", "mount in a shared tree that has a copy below a peer of it",
     .shape = ON_ONE, .limit = "mount_max", .call = "umount2(peer, MNT_DETACH)", .exit = true,
     .prepare = mounts_shared_peer, .make = make, .release = release);
