/* SPDX-License-Identifier: GPL-2.0 */
/* Many threads of one process. */
#ifndef KTEARDOWN_HUNT_THREADS_H
#define KTEARDOWN_HUNT_THREADS_H

#include "hunt/kind.h"

#include <sched.h>

#define THREAD_STACK 16384
#define THREAD_FLAGS                                                                               \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

static struct {
	void (*run)(void);
	int started;
} threads;

static inline int threads_one(void *unused)
{
	(void)unused;
	__atomic_add_fetch(&threads.started, 1, __ATOMIC_SEQ_CST);
	if (threads.run)
		threads.run();
	wait_to_be_killed();
}

/* Makes one thread of the caller for each object. Each calls run(), which may be NULL. */
static inline void threads_make(void (*run)(void))
{
	char *stacks = mmap(NULL, nr_objects * THREAD_STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int64_t i;

	MUST((long)stacks);
	threads.run = run;
	for (i = 0; i < nr_objects; i++)
		MUST(clone(threads_one, stacks + (i + 1) * THREAD_STACK, THREAD_FLAGS, NULL));
	while (__atomic_load_n(&threads.started, __ATOMIC_SEQ_CST) < nr_objects)
		sched_yield();
	/* They have begun; now they block. */
	usleep(20000);
}

#endif
