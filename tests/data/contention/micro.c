// SPDX-License-Identifier: GPL-2.0
/*
 * Cases with known counts: a process on each CPU does N operations on memory that all share.
 * CASE says which; what else the operation does is its own, and takes about 300 instructions.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 64
#define ALONE _Alignas(64)

struct waiter {
	ALONE struct waiter *_Atomic next;
	_Atomic int waits;
};

static struct shared {
	ALONE _Atomic int lock;
	ALONE struct waiter *_Atomic tail;
	ALONE _Atomic long counter;
	ALONE long data;
	ALONE long *_Atomic pointer;
	ALONE _Atomic int ready;
	ALONE volatile long together[8];
	struct {
		ALONE volatile long value;
	} own[MOST];
	struct waiter waiters[MOST];
} *shared;

static int me, tasks;

static void relax(void)
{
	__asm__ volatile("pause" ::: "memory");
}

/* Two instructions a round. */
static void work(long rounds)
{
	__asm__ volatile("1: dec %0\n\tjnz 1b" : "+r"(rounds)::"cc");
}

/* -- a lock that all try to take, and one that is handed on -- */

static void spin_lock(void)
{
	while (atomic_exchange(&shared->lock, 1))
		while (atomic_load_explicit(&shared->lock, memory_order_relaxed))
			relax();
}

static void spin_unlock(void)
{
	atomic_store_explicit(&shared->lock, 0, memory_order_release);
}

static void queue_lock(void)
{
	struct waiter *mine = &shared->waiters[me], *before;

	atomic_store_explicit(&mine->next, NULL, memory_order_relaxed);
	atomic_store_explicit(&mine->waits, 1, memory_order_relaxed);
	before = atomic_exchange(&shared->tail, mine);
	if (!before)
		return;
	atomic_store_explicit(&before->next, mine, memory_order_release);
	while (atomic_load_explicit(&mine->waits, memory_order_acquire))
		relax();
}

static void queue_unlock(void)
{
	struct waiter *mine = &shared->waiters[me], *last = mine, *next;

	next = atomic_load_explicit(&mine->next, memory_order_acquire);
	if (!next) {
		if (atomic_compare_exchange_strong(&shared->tail, &last, NULL))
			return;
		while (!(next = atomic_load_explicit(&mine->next, memory_order_acquire)))
			relax();
	}
	atomic_store_explicit(&next->waits, 0, memory_order_release);
}

/* -- the cases -- */

static void own(void)
{
	shared->own[me].value++;
	work(150);
}

static void together(void)
{
	shared->together[me % 8]++;
	work(150);
}

static void atomic(void)
{
	atomic_fetch_add(&shared->counter, 1);
	work(150);
}

static void serial(void)
{
	spin_lock();
	shared->data++;
	work(150);
	spin_unlock();
}

static void tenth(void)
{
	work(1350);
	serial();
}

static void queued(void)
{
	queue_lock();
	shared->data++;
	work(150);
	queue_unlock();
}

/* The first one replaces the pointer after every hundred operations; all read what it points to. */
static void readers(void)
{
	static long operations;

	if (me == 0 && ++operations % 100 == 0)
		shared->pointer = (long *)&shared->together[operations / 100 % 8];
	if (*shared->pointer < 0)
		abort();
	work(150);
}

static const struct {
	const char *name;
	void (*operation)(void);
} cases[] = {{"own", own},     {"together", together}, {"atomic", atomic}, {"serial", serial},
	     {"tenth", tenth}, {"queued", queued},     {"readers", readers}};

static void run(void (*operation)(void), long count)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(me, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(1);
	shared->ready++;
	while (shared->ready < tasks)
		relax();
	while (count--)
		operation();
	exit(0);
}

int main(void)
{
	const char *name = getenv("CASE"), *count = getenv("N");
	void (*operation)(void) = NULL;
	int status, failed = 0;

	for (size_t i = 0; name && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(name, cases[i].name))
			operation = cases[i].operation;
	tasks = sysconf(_SC_NPROCESSORS_ONLN);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (!operation || !count || shared == MAP_FAILED)
		return 1;
	memset(shared, 0, sizeof(*shared));
	shared->pointer = (long *)shared->together;
	for (me = 0; me < tasks; me++)
		if (!fork())
			run(operation, atol(count));
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
