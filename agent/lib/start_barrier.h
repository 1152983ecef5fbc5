/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A barrier at which the tasks of several processes sleep until it is opened. It is in
 * memory that they share.
 */
#ifndef KTEARDOWN_START_BARRIER_H
#define KTEARDOWN_START_BARRIER_H

#include <stdatomic.h>

#include "workload.h"

struct start_barrier {
	_Atomic uint32_t open; /* 0: closed */
};

/* Returns at once if the barrier is open. */
void start_barrier_wait(struct start_barrier *g);
void start_barrier_open(struct start_barrier *g);

#endif
