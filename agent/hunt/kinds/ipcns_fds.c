// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/namespaces.h"

static int open_one(int64_t i)
{
	(void)i;
	return namespace_open(CLONE_NEWIPC, "ipc");
}

KIND(ipcns_fds, "namespaces", "IPC namespace that a descriptor keeps", .shape = OF_ONE,
     .limit = "ipcns", .prepare = namespaces_prepare, .open = open_one);
