/* SPDX-License-Identifier: GPL-2.0 */
/* POSIX timers. The system calls, since libc has its own numbers of them. */
#ifndef KTEARDOWN_HUNT_TIMERS_H
#define KTEARDOWN_HUNT_TIMERS_H

#include "hunt/kind.h"

#include <time.h>

static int32_t *timers;

static inline void timer_make(int64_t i, clockid_t clock, struct sigevent *event, time_t seconds,
			      long ns)
{
	struct itimerspec when = {.it_value = {seconds, ns}};

	if (!timers)
		timers = array(sizeof(*timers));
	MUST(syscall(SYS_timer_create, clock, event, &timers[i]));
	MUST(syscall(SYS_timer_settime, timers[i], 0, &when, NULL));
}

static inline void timer_remove(int64_t i)
{
	MUST(syscall(SYS_timer_delete, timers[i]));
}

#endif
