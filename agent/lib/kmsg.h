/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel's log from /dev/kmsg: independent of the console's log level, with time
 * stamps in microseconds.
 */
#ifndef KTEARDOWN_KMSG_H
#define KTEARDOWN_KMSG_H

#include "workload.h"

struct kmsg {
	int64_t time_ns; /* of the kernel's log clock, always whole microseconds */
	char text[512];
};

/* For all messages from now on. A file descriptor, or -errno. */
int kmsg_open(void);
/* For all messages that the kernel still has, beginning with those of the boot. */
int kmsg_open_all(void);
/* Reads the next message: 1, 0 if it has not come yet, or -errno (-EPIPE: some were lost). */
int kmsg_next(int fd, struct kmsg *m);
/*
 * Reads on to the next message in which the kernel reports a problem: 1, 0 if no such
 * message is left, or -errno. Where messages were lost because the log came faster than it was
 * read, those that are left are searched.
 */
int kmsg_problem(int fd, struct kmsg *m);

/*
 * Parses one raw record of /dev/kmsg ("priority,sequence,microseconds,flags;text"). False
 * if it is not valid.
 */
bool kmsg_parse(const char *raw, size_t len, struct kmsg *m);
/* The time in "(elapsed 0.012 seconds)", in ns; -1 if the text has none. */
int64_t kmsg_elapsed(const char *text);

#endif
