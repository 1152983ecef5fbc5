// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/namespaces.h"

static void add(int64_t i)
{
	namespace_add(i, CLONE_NEWIPC);
}

KIND(ipcns_processes, "namespaces", "IPC namespace of one process", .shape = OF_ONE,
     .limit = "ipcns", .call = "kill() and waitpid() of all", .prepare = namespaces_prepare,
     .add = add, .remove = namespace_remove, .release = namespaces_release);
