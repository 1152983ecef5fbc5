/* SPDX-License-Identifier: GPL-2.0 */
/* How often CPUs switched tasks and interrupted each other, as the kernel counts it since boot. */
#ifndef KTEARDOWN_HUNT_SWITCHES_H
#define KTEARDOWN_HUNT_SWITCHES_H

#include <stdint.h>
#include <stdio.h>

struct switches {
	int64_t switches; /* of tasks, on all CPUs */
	int64_t calls; /* functions that one CPU had another CPU run */
	int64_t flushes; /* of the TLB of another CPU */
};

/* -1 for what the file does not have. */
void switches_read(FILE *stat, FILE *interrupts, struct switches *s);
/* Of this machine, now. */
struct switches switches_now(void);

#endif
