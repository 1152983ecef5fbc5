/* SPDX-License-Identifier: GPL-2.0 */
/* Call chains counted by what they are called: one entry for all samples with the same functions.
 */
#ifndef KTEARDOWN_STACKS_H
#define KTEARDOWN_STACKS_H

#include "sampler.h"
#include "symbols.h"

/* Frames that are no function of the kernel. */
#define FRAME_UNKNOWN (-1) /* [unknown]: no symbol has the address */
#define FRAME_USER (-2) /* [user]: user space, whatever it does there */
#define FRAME_IDLE_TASK                                                                            \
	(-3) /* [idle task], outermost: nothing to run, or an interrupt meanwhile                  \
	      */
#define FRAME_NO_INTERRUPTS (-4) /* [no interrupts], innermost: none for 1.5 periods */

#define STACK_FRAMES_MAX (SAMPLER_CHAIN_MAX + 3)
/* A stack's text is no longer; one that would be loses its outermost frames, for "[cut]". */
#define STACK_TEXT_MAX 2048

struct stack {
	uint32_t hash, nr;
	size_t frames; /* where its frames begin in the table's, outermost first */
	int64_t count, ns;
};

struct stacks {
	struct stack *all;
	size_t nr, room, bytes; /* room is a power of two: an open hash table */
	int32_t *frames;
	size_t nr_frames, frames_bytes;
};

/* 0 or -ENOMEM. */
int stacks_add(struct stacks *s, const struct symbols *symbols, const struct cpu_sample *sample,
	       int64_t period_ns);
/*
 * Hands out every stack as text, "outermost;...;innermost", by the alphabet, so that equal tables
 * come out equal; those that read the same, since two functions have one name, as one. 0 or
 * -ENOMEM.
 */
int stacks_report(const struct stacks *s, const struct symbols *symbols,
		  void (*report)(void *to, const char *text, int64_t count, int64_t ns), void *to);
void stacks_free(struct stacks *s);

#endif
