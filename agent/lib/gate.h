/* SPDX-License-Identifier: GPL-2.0 */
/* What tasks of several processes wait at, asleep, until it is opened: memory that they share. */
#ifndef KTEARDOWN_GATE_H
#define KTEARDOWN_GATE_H

#include <stdatomic.h>

#include "workload.h"

struct gate {
	_Atomic uint32_t open; /* 0: closed */
};

/* Returns at once where it is open. */
void gate_wait(struct gate *g);
void gate_open(struct gate *g);

#endif
