// SPDX-License-Identifier: GPL-2.0
/*
 * A link has nothing of its own but a few bytes of stack: it may share the memory
 * of a hundred thousand others, thread-local variables of the C library included,
 * so its system calls are made by hand.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "chain_parts.h"
#include "lib/tool.h"

/* Where the sanitizers would want memory, a link has none. */
#define BARE __attribute__((no_sanitize("address", "undefined"), no_stack_protector))

BARE static inline long raw_syscall(long number, long a, long b, long c, long d)
{
#if defined(__x86_64__)
	register long fourth __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long nr __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
			 x2 __asm__("x2") = c, x3 __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(nr), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
#else
#error "how this architecture makes a system call is not written down here"
#endif
}

BARE void chain_link(bool used_pipes)
{
	int64_t token;
	struct iovec own = {&token, sizeof(token)};

	raw_syscall(SYS_close, CHAIN_NEXT, 0, 0, 0);
	raw_syscall(SYS_close_range, CHAIN_REST, ~0U, 0, 0);
	while (raw_syscall(SYS_read, CHAIN_LEFT, (long)&token, sizeof(token), 0) == sizeof(token)) {
		token++;
		/* A pipe that was written keeps a page for next time; one that was lent ours does
		 * not. */
		if (used_pipes)
			raw_syscall(SYS_write, CHAIN_RIGHT, (long)&token, sizeof(token), 0);
		else
			raw_syscall(SYS_vmsplice, CHAIN_RIGHT, (long)&own, 1, 0);
	}
	/*
	 * The left neighbour is dead already, and the signal on its way. An exit now would
	 * be one that the signal did not cause.
	 */
	for (;;)
		raw_syscall(SYS_ppoll, 0, 0, 0, 0);
}

static int chain_program(int argc, char **argv)
{
	chain_link(argc == 2 && !strcmp(argv[1], "used"));
}
TOOL(chain_program, chain_program);
