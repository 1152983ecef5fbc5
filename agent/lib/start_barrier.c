// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* syscall() */
#include "start_barrier.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void start_barrier_wait(struct start_barrier *g)
{
	while (!g->open)
		syscall(SYS_futex, &g->open, FUTEX_WAIT, 0, NULL, NULL, 0);
}

void start_barrier_open(struct start_barrier *g)
{
	g->open = 1;
	syscall(SYS_futex, &g->open, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
