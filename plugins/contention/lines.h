/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which CPUs have which cache lines, and how often each line had to come from another CPU.
 *
 * A line is in the caches of its sharers, and one of them, its owner, may have modified it (MSI, no
 * capacity, one level). A line moves if another CPU had modified it, or if a write has to take it
 * from CPUs that have read it. A shared read fetches a line that others have and nobody has
 * modified.
 */
#ifndef LINES_H
#define LINES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MAX_CPUS 64

/* What a move and a shared read cost, in ticks. */
extern uint64_t transfer_ticks;
#define SHARED_READ_TICKS (transfer_ticks / 2)

/*
 * How often something was done by the kernel and by programs: counts are kept apart. A spin is a
 * PAUSE, one in each round of a loop that waits.
 */
struct sharing {
	uint64_t moves, shared_reads, locked, spins;
};

/* An instruction that accesses memory; also a call and a return do (callers.h). */
struct site {
	struct site *next;
	uint64_t address;
	bool is_locked, is_call, is_return;
	struct sharing count;
};

enum access { READ, WRITE };

struct site *site_of(uint64_t address, bool is_locked);

/*
 * An access of a CPU at a time in ticks. Returns when the access is done: at the same time if the
 * CPU has the line.
 */
uint64_t line_access(unsigned int cpu, uint64_t address, enum access access, struct site *site,
		     uint64_t now);

/*
 * A round of waiting of a CPU, which takes so many ticks. What it waits for is the line of its last
 * locked instruction: a CPU that waits in the queue of a spinlock reads only a line of its own.
 */
void line_spin(unsigned int cpu, struct site *site, uint64_t ticks);

/* Forgets all lines and counts. */
void lines_reset(void);

/*
 * Writes "count kernel ..." and "count programs ...", all sites and all lines that moved:
 *
 *	line ADDRESS MOVES SHARED_READS WRITERS SPINS WAITED_TICKS [SITE:CALLER:OFFSET:MOVES]...
 *
 * CALLER is the call in which the CPU executes a locked instruction, else 0: the instruction itself
 * is often in a function that only locks. OFFSET is what the instruction
 * accessed last in the line.
 */
void lines_write(FILE *out);

#endif
