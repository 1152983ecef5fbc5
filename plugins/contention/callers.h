/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which call each CPU is in: a call stores where to return to, and a return loads that from the
 * same address. When a CPU goes on with another stack, for another task or an interrupt, what is
 * known is forgotten.
 */
#ifndef CALLERS_H
#define CALLERS_H

#include <stdint.h>

struct site;

void caller_enters(unsigned int cpu, uint64_t stack_address, const struct site *call);
void caller_leaves(unsigned int cpu, uint64_t stack_address);

/* The call that the CPU is in, or NULL if that is not known. */
const struct site *caller_of(unsigned int cpu);

/* Forgets all calls. */
void callers_reset(void);

#endif
