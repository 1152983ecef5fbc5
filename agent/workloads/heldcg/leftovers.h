/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that is free for the kernel's next objects of a kind, and not returned: what earlier
 * trials have left of it would hide some of the memory of new objects.
 */
#ifndef KTEARDOWN_LEFTOVERS_H
#define KTEARDOWN_LEFTOVERS_H

#include "workload.h"

/* Returns the free slabs of all caches. 0 or -errno. */
int leftovers_shrink_slabs(void);
/*
 * Makes cgroups that use all per-CPU memory that is free. It is allocated in chunks of
 * several MB; a chunk that is free, or one of which a small part is used, is kept. 0 or -errno.
 */
int leftovers_fill(void);
/* Removes these cgroups. 0 or -errno. */
int leftovers_empty(void);

#endif
