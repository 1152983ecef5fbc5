// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/namespaces.h"

static void add(int64_t i)
{
	namespace_add(i, CLONE_NEWPID);
}

KIND(pidns_processes, "namespaces", "pid namespace whose init is its only process", .shape = OF_ONE,
     .limit = "pidns", .call = "kill() and waitpid() of all", .prepare = namespaces_prepare,
     .add = add, .remove = namespace_remove, .release = namespaces_release);
