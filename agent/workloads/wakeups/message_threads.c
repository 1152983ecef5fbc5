// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* sched_getcpu() */
#include "message_threads.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (64 << 10)
#define MATRICES 3

enum post { ASLEEP, POSTED };

struct messenger;

struct worker {
	/* All that a waker writes is on one cache line. */
	_Alignas(64) _Atomic int post;
	int64_t woken_ns;
	struct worker *next; /* on the messenger's list */
	struct messenger *messenger;
	pthread_t thread;
	_Atomic int64_t requests;
	unsigned long *matrices;
	struct histogram wakeup, request;
};

struct messenger {
	_Alignas(64) _Atomic int post;
	_Atomic(struct worker *) waiting;
	pthread_t thread;
	struct worker *workers;
	int started;
};

struct cpu_lock {
	_Alignas(64) _Atomic int taken;
};

static const struct message_threads_plan *plan;
static struct cpu_lock *cpu_locks;
static unsigned long order; /* number of rows and columns of a matrix */
static _Atomic bool stopping;

static void relax_cpu(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#else
	__asm__ volatile("yield" ::: "memory");
#endif
}

static void post(_Atomic int *word)
{
	int asleep = ASLEEP;

	if (atomic_compare_exchange_strong(word, &asleep, POSTED))
		syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void await_post(_Atomic int *word)
{
	while (atomic_load(word) == ASLEEP)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, ASLEEP, NULL, NULL, 0);
}

/* -- a worker -- */

/* Returns the wakeup latency in ns; negative if it was woken because the run ends. */
static int64_t ask_and_wait(struct worker *w)
{
	struct messenger *m = w->messenger;

	atomic_store(&w->post, ASLEEP);
	w->next = atomic_load(&m->waiting);
	while (!atomic_compare_exchange_weak(&m->waiting, &w->next, w))
		;
	post(&m->post);
	if (atomic_load(&stopping))
		return -1;
	await_post(&w->post);
	return atomic_load(&stopping) ? -1 : now_ns() - w->woken_ns;
}

static struct cpu_lock *lock_this_cpu(void)
{
	for (;;) {
		int cpu = sched_getcpu();
		struct cpu_lock *lock = &cpu_locks[cpu];

		while (atomic_exchange(&lock->taken, 1))
			relax_cpu();
		/* The task may have been migrated while it waited. */
		if (sched_getcpu() == cpu)
			return lock;
		atomic_store(&lock->taken, 0);
	}
}

/* Plain matrix multiplication: each step is written to memory. The factors are never written. */
static void multiply(const unsigned long *left, const unsigned long *right, unsigned long *product)
{
	for (unsigned long row = 0; row < order; row++)
		for (unsigned long column = 0; column < order; column++) {
			product[row * order + column] = 0;
			for (unsigned long i = 0; i < order; i++)
				product[row * order + column] +=
					left[row * order + i] * right[i * order + column];
		}
}

static void work(struct worker *w)
{
	struct cpu_lock *lock = plan->locking ? lock_this_cpu() : NULL;
	unsigned long size = order * order;

	for (int64_t i = 0; i < plan->operations; i++)
		multiply(w->matrices, w->matrices + size, w->matrices + 2 * size);
	if (lock)
		atomic_store(&lock->taken, 0);
}

static void *run_worker(void *argument)
{
	struct worker *w = argument;

	while (!atomic_load(&stopping)) {
		int64_t wakeup_ns = ask_and_wait(w), start_ns = now_ns();

		if (wakeup_ns < 0)
			break;
		histogram_add(&w->wakeup, wakeup_ns);
		if (plan->sleep_us)
			sleep_ns(plan->sleep_us * 1000);
		work(w);
		histogram_add(&w->request, now_ns() - start_ns);
		atomic_fetch_add(&w->requests, 1);
	}
	return NULL;
}

/* -- a messenger -- */

static void wake_all(struct messenger *m)
{
	struct worker *w = atomic_exchange(&m->waiting, NULL), *next;
	int64_t now = now_ns();

	for (; w; w = next) {
		/* After the post the worker may be on the list again. */
		next = w->next;
		w->woken_ns = now;
		post(&w->post);
	}
}

static void *run_messenger(void *argument)
{
	struct messenger *m = argument;

	for (;;) {
		atomic_store(&m->post, ASLEEP);
		wake_all(m);
		if (atomic_load(&stopping))
			return NULL;
		await_post(&m->post);
	}
}

/* -- all threads -- */

static int start_thread(pthread_t *thread, void *(*body)(void *), void *argument)
{
	pthread_attr_t attributes;
	int error;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	error = pthread_create(thread, &attributes, body, argument);
	pthread_attr_destroy(&attributes);
	return -error;
}

static void *zeroed(size_t alignment, size_t count, size_t size)
{
	void *memory = aligned_alloc(alignment, count * size);

	return memory ? memset(memory, 0, count * size) : NULL;
}

static int start_worker(struct messenger *m)
{
	struct worker *w = &m->workers[m->started];
	int error;

	w->messenger = m;
	w->matrices = calloc(MATRICES * order * order + 1, sizeof(*w->matrices));
	if (!w->matrices)
		return -ENOMEM;
	error = start_thread(&w->thread, run_worker, w);
	m->started += !error;
	return error;
}

static int start_messenger(struct messenger *m)
{
	int error;

	m->workers = zeroed(_Alignof(struct worker), plan->workers, sizeof(*m->workers));
	if (!m->workers)
		return -ENOMEM;
	error = start_thread(&m->thread, run_messenger, m);
	while (!error && m->started < plan->workers)
		error = start_worker(m);
	return error;
}

static void stop_all(struct messenger *all, struct message_threads_result *result)
{
	atomic_store(&stopping, true);
	for (int i = 0; i < plan->message_threads; i++) {
		post(&all[i].post);
		pthread_join(all[i].thread, NULL);
		for (int j = 0; j < all[i].started; j++) {
			struct worker *w = &all[i].workers[j];

			post(&w->post);
			pthread_join(w->thread, NULL);
			histogram_merge(&result->wakeup, &w->wakeup);
			histogram_merge(&result->request, &w->request);
		}
	}
}

static int64_t requests(const struct messenger *all)
{
	int64_t sum = 0;

	for (int i = 0; i < plan->message_threads; i++)
		for (int j = 0; j < all[i].started; j++)
			sum += atomic_load(&all[i].workers[j].requests);
	return sum;
}

static void watch(const struct messenger *all, struct message_threads_result *result)
{
	int64_t start = now_ns(), last_ns = start, last = 0;

	while (last_ns - start < plan->runtime_ns) {
		int64_t left = start + plan->runtime_ns - last_ns, done, now;

		sleep_ns(left < plan->interval_ns ? left : plan->interval_ns);
		done = requests(all);
		now = now_ns();
		if (result->intervals < MESSAGE_THREADS_INTERVALS)
			result->rps[result->intervals++] =
				((done - last) * 1000000000 + (now - last_ns) / 2) /
				(now - last_ns);
		last = done;
		last_ns = now;
	}
	result->took_ns = last_ns - start;
}

/* The size with which MATRICES of them take cache_kb. */
static unsigned long matrix_order(uint64_t cache_kb)
{
	uint64_t elements = cache_kb * 1024 / MATRICES / sizeof(unsigned long), n = 0;

	while ((n + 1) * (n + 1) <= elements)
		n++;
	return n;
}

int message_threads_run(const struct message_threads_plan *wanted,
			struct message_threads_result *result)
{
	struct messenger *all;
	int error = 0;

	plan = wanted;
	order = matrix_order(plan->cache_kb);
	all = zeroed(_Alignof(struct messenger), plan->message_threads, sizeof(*all));
	cpu_locks = zeroed(_Alignof(struct cpu_lock), sysconf(_SC_NPROCESSORS_CONF),
			   sizeof(*cpu_locks));
	if (!all || !cpu_locks)
		return -ENOMEM;
	for (int i = 0; !error && i < plan->message_threads; i++)
		error = start_messenger(&all[i]);
	if (error)
		return error;
	watch(all, result);
	stop_all(all, result);
	return 0;
}
