/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's log as /dev/kmsg gives it: whatever the console's log level, in microseconds. */
#ifndef KTEARDOWN_KMSG_H
#define KTEARDOWN_KMSG_H

#include "workload.h"

struct kmsg {
	int64_t time_ns; /* of the kernel's log clock, always whole microseconds */
	char text[512];
};

/* Everything logged from now on. A file descriptor, or -errno. */
int kmsg_open(void);
/* Everything that the kernel still has, the boot's messages first. */
int kmsg_open_all(void);
/* The next message: 1, 0 where there is none yet, or -errno (-EPIPE: some were lost). */
int kmsg_next(int fd, struct kmsg *m);
/*
 * The next message that is a complaint of the kernel about itself: 1, 0 where there is none (none
 * in what is left, where the log came faster than it was read), or -errno.
 */
int kmsg_complaint(int fd, struct kmsg *m);

/* One raw record of /dev/kmsg ("priority,sequence,microseconds,flags;text"). False: it is none. */
bool kmsg_parse(const char *raw, size_t len, struct kmsg *m);
/* The time in "(elapsed 0.012 seconds)", in ns; -1 where the text has none. */
int64_t kmsg_elapsed(const char *text);

#endif
