/* SPDX-License-Identifier: GPL-2.0 */
/* What a user's script expects of a system and the agent's own workloads do not need. */
#ifndef KTEARDOWN_SCRIPT_GUEST_H
#define KTEARDOWN_SCRIPT_GUEST_H

#include "workload.h"

/*
 * Mounts, links, controllers, modules, limits and the protection of the agent, once in a guest. 0,
 * or what wl_fail() returns.
 */
int guest_prepare(struct trial *t);

#endif
