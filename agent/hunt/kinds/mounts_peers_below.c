// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/mounts.h"

/* What is mounted below m/peer is mounted below m/peer/again too. */
static void prepare(void)
{
	mounts_shared_peer();
	MUST(mkdir("m/peer/again", 0700));
	mounts_bind("m/peer", "m/peer/again");
}

static void add(int64_t i)
{
	char path[32];

	snprintf(path, sizeof(path), "m/peer/%lld", (long long)i);
	MUST(mkdir(path, 0700));
	mounts_bind("m/from", path);
}

static void release(void)
{
	MUST(umount2("m/peer/again", MNT_DETACH));
}

KIND(mounts_peers_below, "mounts", "mount in a shared tree that has a copy below a peer of it",
     .shape = ON_ONE, .limit = "mount_max", .call = "umount2(peer, MNT_DETACH)", .exit = true,
     .prepare = prepare, .add = add, .release = release);
