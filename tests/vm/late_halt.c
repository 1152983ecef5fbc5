// SPDX-License-Identifier: GPL-2.0
/*
 * Loaded into QEMU with LD_PRELOAD: delays each virtual CPU by 2 us when it leaves the code that it
 * runs. A CPU that halts is then marked as halted for that long before its last instructions count.
 * The main loop wakes up late, by up to 0.5 ms, as on a busy host.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define DELAY_NS 2000

static void leave_late(const char *name, sigjmp_buf env, int value)
{
	void (*leave)(sigjmp_buf, int) = (void (*)(sigjmp_buf, int))dlsym(RTLD_NEXT, name);
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < DELAY_NS);
	leave(env, value);
}

void siglongjmp(sigjmp_buf env, int value)
{
	leave_late("siglongjmp", env, value);
	__builtin_unreachable();
}

void __longjmp_chk(sigjmp_buf env, int value);
void __longjmp_chk(sigjmp_buf env, int value)
{
	leave_late("__longjmp_chk", env, value);
	__builtin_unreachable();
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	static unsigned int calls;
	int (*poll_now)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *) =
		(int (*)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *))dlsym(
			RTLD_NEXT, "ppoll");
	int ready = poll_now(fds, count, timeout, mask);

	if (gettid() == getpid())
		usleep(++calls * 37 % 500);
	return ready;
}
