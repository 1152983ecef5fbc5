/* SPDX-License-Identifier: GPL-2.0 */
/* Call chains, counted by their functions: one entry for all samples with the same functions. */
#ifndef KTEARDOWN_STACKS_H
#define KTEARDOWN_STACKS_H

#include "sampler.h"
#include "symbols.h"

/* Frames that are not functions of the kernel. */
#define FRAME_UNKNOWN (-1) /* [unknown]: the address belongs to no symbol */
#define FRAME_USER (-2) /* [user]: user space, whatever runs there */
/* [idle task], outermost: the CPU is idle, or handles an interrupt meanwhile */
#define FRAME_IDLE_TASK (-3)
#define FRAME_NO_INTERRUPTS (-4) /* [no interrupts], innermost: no interrupt for 1.5 periods */

#define STACK_FRAMES_MAX (SAMPLER_CHAIN_MAX + 3)
/* The longest text of a stack. From a longer one the outermost frames are replaced by "[cut]". */
#define STACK_TEXT_MAX 2048

struct stack {
	uint32_t hash, nr;
	size_t frames; /* index of its first frame in the table's frames, outermost first */
	int64_t count, ns;
};

struct stacks {
	struct stack *all;
	size_t nr, room, bytes; /* room is a power of two: a hash table with open addressing */
	int32_t *frames;
	size_t nr_frames, frames_bytes;
};

/* 0 or -ENOMEM. */
int stacks_add(struct stacks *s, const struct symbols *symbols, const struct cpu_sample *sample,
	       int64_t period_ns);
/*
 * Passes every stack to report() as text, "outermost;...;innermost", in alphabetical
 * order, so that equal tables give equal output. Stacks with the same text, since two
 * functions have the same name, are merged. 0 or -ENOMEM.
 */
int stacks_report(const struct stacks *s, const struct symbols *symbols,
		  void (*report)(void *to, const char *text, int64_t count, int64_t ns), void *to);
void stacks_free(struct stacks *s);

#endif
