/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that children do not inherit. The processes of a workload are forked by the
 * agent: without this, each of them would have to free a copy of what the agent keeps.
 */
#ifndef KTEARDOWN_DONTFORK_H
#define KTEARDOWN_DONTFORK_H

#include "workload.h"

/* New memory is zeroed; the memory may move. *size becomes at least wanted. 0 or -ENOMEM. */
int dontfork_grow(void **memory, size_t *size, size_t wanted);
void dontfork_free(void **memory, size_t *size);

#endif
