// SPDX-License-Identifier: GPL-2.0
#include "callers.h"

#include <stddef.h>
#include <string.h>

#include "lines.h"

#define MOST_CALLS 64
/* A stack of the kernel; an address of another one has other bits above these. */
#define STACK_BITS 14

struct call {
	uint64_t stack_address;
	const struct site *site;
};

static struct calls {
	unsigned int count;
	struct call call[MOST_CALLS];
} calls[MAX_CPUS];

/* Forgets what has returned when the stack is at this address: calls at or below it. */
static void forget_returned(struct calls *of, uint64_t stack_address)
{
	const struct call *inner = &of->call[of->count - 1];

	if (of->count && inner->stack_address >> STACK_BITS != stack_address >> STACK_BITS)
		of->count = 0;
	while (of->count && of->call[of->count - 1].stack_address <= stack_address)
		of->count--;
}

void caller_enters(unsigned int cpu, uint64_t stack_address, const struct site *call)
{
	struct calls *of = &calls[cpu];

	forget_returned(of, stack_address);
	if (of->count == MOST_CALLS) {
		memmove(of->call, of->call + 1, sizeof(of->call) - sizeof(of->call[0]));
		of->count--;
	}
	of->call[of->count++] = (struct call){stack_address, call};
}

void caller_leaves(unsigned int cpu, uint64_t stack_address)
{
	forget_returned(&calls[cpu], stack_address);
}

const struct site *caller_of(unsigned int cpu)
{
	const struct calls *of = &calls[cpu];

	return of->count ? of->call[of->count - 1].site : NULL;
}

void callers_reset(void)
{
	int i;

	for (i = 0; i < MAX_CPUS; i++)
		calls[i].count = 0;
}
