/* SPDX-License-Identifier: GPL-2.0 */
/* Network namespaces that a descriptor keeps, beside the owner's own. */
#ifndef KTEARDOWN_HUNT_NETNS_BESIDE_H
#define KTEARDOWN_HUNT_NETNS_BESIDE_H

#include "hunt/lib/namespaces.h"

static int netns_home = -1;

/* Makes one, and returns to the namespace of the first call. */
static inline int netns_beside(void)
{
	int fd;

	if (netns_home < 0)
		netns_home = MUST(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
	fd = namespace_open(CLONE_NEWNET, "net");
	MUST(setns(netns_home, CLONE_NEWNET));
	return fd;
}

#endif
