/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that children do not inherit. A workload's processes are copies of the
 * agent: what the agent keeps, each of them would have to let go of.
 */
#ifndef KTEARDOWN_DONTFORK_H
#define KTEARDOWN_DONTFORK_H

#include "workload.h"

/* Zeroed where it is new, moved where it must be; *size is raised to at least wanted. 0 or -ENOMEM.
 */
int dontfork_grow(void **memory, size_t *size, size_t wanted);
void dontfork_free(void **memory, size_t *size);

#endif
