// SPDX-License-Identifier: GPL-2.0
#include "hunt/lib/namespaces.h"

static void add(int64_t i)
{
	namespace_add(i, CLONE_NEWNET);
}

KIND(netns_processes, "namespaces", "network namespace of one process", .shape = OF_ONE,
     .limit = "netns", .needs = "CONFIG_NET_NS", .call = "kill() and waitpid() of all",
     .prepare = namespaces_prepare, .add = add, .remove = namespace_remove,
     .release = namespaces_release);
