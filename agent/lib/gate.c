// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* syscall() */
#include "gate.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void gate_wait(struct gate *g)
{
	while (!g->open)
		syscall(SYS_futex, &g->open, FUTEX_WAIT, 0, NULL, NULL, 0);
}

void gate_open(struct gate *g)
{
	g->open = 1;
	syscall(SYS_futex, &g->open, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
