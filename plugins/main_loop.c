// SPDX-License-Identifier: GPL-2.0
/*
 * Keeps QEMU's main loop and its virtual CPUs from running at the same time, under the
 * instruction clock (-icount shift=N,sleep=off). Loaded into QEMU with LD_PRELOAD.
 *
 * With this clock all virtual CPUs run in one thread. It wakes the main loop up at every timer of
 * the guest, and the main loop may do one of two things too early:
 *
 * - When a virtual CPU executes HLT, the flag that it is halted is set before the instructions that
 *   it has executed since it was last entered are added to the clock. If the main loop looks in
 *   between, it sets the clock forward to the next timer, and then these instructions are added:
 *   that timer fires too late.
 * - When a virtual CPU has used up its turn, the main loop may run the timer that ended the turn
 *   before the thread does, and so change which virtual CPU runs next.
 *
 * Both shift every later figure of the guest, and when the main loop looks depends on the load of
 * the host. So the main loop, which has returned from ppoll(), is made to wait until all virtual
 * CPUs are halted: until their thread waits for its condition variable. It does not wait longer
 * than 50 ms. It does not wait at all if a shutdown was requested, or if it was woken up by any
 * other thread, such as the one that reads the requests of the monitor.
 *
 * A guest that suspends to memory is woken by such a request. When it suspends, its virtual CPUs
 * stop, and the main loop sets the clock forward if it sees that before it handles the suspend. So
 * it has to wait then, too: the request that woke the guest the last time, and what the thread of
 * the monitor does after it, do not count.
 *
 * QEMU's thread that frees memory (RCU) ends the turn of the virtual CPU that runs if 30 objects
 * wait to be freed, and since 11.1 also if it has waited for 50 ms. So with several virtual CPUs
 * the load of the host would end turns. QEMU is told not to do so: that thread then waits until
 * the turn ends by itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define STEP_MS 5
/* The main loop goes on after this time, because a device of the guest may need it. */
#define MAX_WAIT_MS 50
/* How often the main loop does not wait after another thread has woken it up for a request. */
#define FREE_TURNS 64
#define AFTER_WAKE_UP_S 3
/* Of what QEMU keeps for each thread that reads. */
#define READER_WORDS 5
/* Its other words are flags, depths and counts below this; what QEMU calls is on a stack. */
#define LOWEST_STACK (1ULL << 36)

static pthread_t main_thread, cpu_thread;
static _Atomic(pthread_cond_t *) halt_cond;
static atomic_bool halted;
static atomic_int free_turns;
static atomic_bool has_run;
/* An eventfd that ends the wait of the main loop. */
static int wake = -1;

static int (*real_wait)(pthread_cond_t *cond, pthread_mutex_t *mutex);
static int (*real_broadcast)(pthread_cond_t *cond);
static int (*real_signal)(pthread_cond_t *cond);
static int (*real_ppoll)(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
			 const sigset_t *mask);
static ssize_t (*real_write)(int fd, const void *bytes, size_t count);
static int (*shutdown_requested)(void);
static bool (*runs)(void);

/* A library of QEMU may call one of them before the constructor: each looks first. */
__attribute__((constructor)) static void find_functions(void)
{
	if (wake >= 0)
		return;
	main_thread = pthread_self();
	real_wait = dlsym(RTLD_NEXT, "pthread_cond_wait");
	real_broadcast = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
	real_signal = dlsym(RTLD_NEXT, "pthread_cond_signal");
	real_ppoll = dlsym(RTLD_NEXT, "ppoll");
	real_write = dlsym(RTLD_NEXT, "write");
	shutdown_requested = dlsym(RTLD_DEFAULT, "qemu_shutdown_requested_get");
	runs = dlsym(RTLD_DEFAULT, "runstate_is_running");
	wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static void end_wait(void)
{
	const uint64_t one = 1;

	(void)!real_write(wake, &one, sizeof(one));
}

/* What QEMU calls. */
struct element {
	void (*notify)(void);
	struct element *next, **place;
};

/*
 * What QEMU calls to end the turn is in a list of the thread of the virtual CPUs, whose head is one
 * of the first words of what get_ptr_rcu_reader() returns. It is the word that points to an element
 * which points back to it.
 */
static void keep_turns(void)
{
	struct element **(*reader)(void);
	void (*forget)(struct element *);
	struct element **words, **word;

	reader = dlsym(RTLD_DEFAULT, "get_ptr_rcu_reader");
	forget = dlsym(RTLD_DEFAULT, "rcu_remove_force_rcu_notifier");
	if (!reader || !forget)
		return;
	words = reader();
	for (word = words; word < words + READER_WORDS; word++)
		if ((uintptr_t)*word > LOWEST_STACK && !((uintptr_t)*word % sizeof(void *)) &&
		    (*word)->place == word) {
			forget(*word);
			return;
		}
}

/*
 * The first thread that calls this, other than the main thread, runs the virtual CPUs. The
 * condition variable is the one for which it waits while all of them are halted.
 */
EXPORT int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	int error;

	find_functions();
	if (!halt_cond && !pthread_equal(pthread_self(), main_thread)) {
		cpu_thread = pthread_self();
		keep_turns();
		halt_cond = cond;
	}
	if (cond != halt_cond)
		return real_wait(cond, mutex);
	halted = true;
	end_wait();
	error = real_wait(cond, mutex);
	halted = false;
	return error;
}

/* Cleared here as well: the woken thread may run much later than the next turn of the main loop. */
EXPORT int pthread_cond_broadcast(pthread_cond_t *cond)
{
	find_functions();
	if (cond == halt_cond)
		halted = false;
	return real_broadcast(cond);
}

EXPORT int pthread_cond_signal(pthread_cond_t *cond)
{
	find_functions();
	if (cond == halt_cond)
		halted = false;
	return real_signal(cond);
}

/* Whether other threads are ignored: from when the guest is suspended to AFTER_WAKE_UP_S later. */
static bool was_woken(void)
{
	static atomic_long until_s;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (has_run && runs && !runs())
		until_s = now.tv_sec + AFTER_WAKE_UP_S;
	return now.tv_sec < until_s;
}

/* QEMU's threads wake the main loop up by writing to an eventfd. */
EXPORT ssize_t write(int fd, const void *bytes, size_t count)
{
	pthread_t self = pthread_self();
	ssize_t written;

	find_functions();
	written = real_write(fd, bytes, count);
	if (count == sizeof(uint64_t) && halt_cond && !pthread_equal(self, main_thread) &&
	    !pthread_equal(self, cpu_thread)) {
		if (!was_woken())
			free_turns = FREE_TURNS;
		end_wait();
	}
	return written;
}

static bool may_go_on(void)
{
	if (free_turns > 0) {
		free_turns--;
		return true;
	}
	return halted || (shutdown_requested && shutdown_requested());
}

static void wait_for_halt(void)
{
	const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
	int left_ms = MAX_WAIT_MS;
	struct pollfd watched = {.fd = wake, .events = POLLIN};
	uint64_t seen;

	has_run = has_run || (runs && runs());
	if (was_woken())
		free_turns = 0;
	for (; !may_go_on() && left_ms > 0; left_ms -= STEP_MS)
		if (real_ppoll(&watched, 1, &step, NULL) > 0)
			(void)!read(wake, &seen, sizeof(seen));
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		 const sigset_t *mask)
{
	int ready;

	find_functions();
	ready = real_ppoll(fds, count, timeout, mask);
	if (ready >= 0 && halt_cond && pthread_equal(pthread_self(), main_thread))
		wait_for_halt();
	return ready;
}
