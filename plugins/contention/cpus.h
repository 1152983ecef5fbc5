/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The logical clock of each virtual CPU, and whose turn it is.
 *
 * QEMU runs the CPUs one after another in one thread. A turn ends at the first block that brings
 * its CPU more than turn_ticks past the CPU that is farthest behind, so the order of what CPUs do
 * follows their clocks. A CPU that sleeps has no part in this; when it wakes up, its clock is that
 * of the CPU that ran last, and the time of an interrupt later. A CPU that is alone has turns, too.
 */
#ifndef CPUS_H
#define CPUS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

extern uint64_t turn_ticks;

/* Finds the functions of QEMU that end a turn. Ends QEMU if this one has none. */
void cpus_prepare(void);

/*
 * The CPU that executes, below MAX_CPUS. QEMU hands a CPU to all functions that it calls, but
 * in 10.0 and 11.1 it is the one for which the block was translated, and with one thread CPUs share
 * blocks.
 */
unsigned int cpu_running(void);

/* Begins a stretch: all clocks are 0. */
void cpus_reset(void);

/*
 * A CPU executes a block of so many instructions. Outside of a stretch it is only noted as awake.
 * The turn does not end after a block that is fragile, nor after the next two.
 */
void cpu_runs(unsigned int cpu, uint64_t instructions, bool is_fragile, bool is_inside);
void cpu_sleeps(unsigned int cpu);

uint64_t cpu_now(unsigned int cpu);
void cpu_goes_on(unsigned int cpu, uint64_t now);

/*
 * Writes a line "cpu NUMBER TICKS INSTRUCTIONS TURNS SLEPT_TICKS" for each CPU that ran. TICKS is
 * its clock when it ran last.
 */
void cpus_write(FILE *out);

#endif
