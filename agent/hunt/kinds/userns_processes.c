// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/namespaces.h"

static void add(int64_t i)
{
	namespace_add(i, CLONE_NEWUSER);
}

KIND(userns_processes, "namespaces", "user namespace of one process", .shape = OF_ONE,
     .limit = "userns", .needs = "CONFIG_USER_NS", .call = "kill() and waitpid() of all",
     .prepare = namespaces_prepare, .add = add, .remove = namespace_remove,
     .release = namespaces_release);
