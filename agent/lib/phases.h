/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The phases of a suspend, from the messages that the kernel logs during it. Pure: the
 * caller reads tracepoints or the log, and passes the messages in their order.
 *
 * Linux 6.1 writes "Freezing user space processes ... ", then "(elapsed 0.001 seconds) "
 * and "done."; since 6.2 it writes "Freezing user space processes", then "Freezing user
 * space processes completed (elapsed 0.001 seconds)". Both are read.
 */
#ifndef KTEARDOWN_PHASES_H
#define KTEARDOWN_PHASES_H

#include "workload.h"

struct phase {
	int64_t start_ns, end_ns; /* -1: not seen */
};

struct phases {
	struct phase user, remaining, thaw;
	struct phase *open; /* the freeze that has begun and not ended yet */
	int64_t elapsed_user_ns, elapsed_remaining_ns; /* as the kernel logged it; -1: not seen */
};

void phases_init(struct phases *p);
/*
 * Passes a message of the kernel and the time when it was written: finds where the freezes
 * begin and end.
 */
void phases_freeze(struct phases *p, int64_t time_ns, const char *message);
/*
 * Finds the thaw from messages alone: from "Restarting tasks" to "suspend exit". This
 * includes the suspend notifiers, which the tracepoint excludes.
 */
void phases_thaw(struct phases *p, int64_t time_ns, const char *message);
/* Passes a whole line of the kernel's log: the kernel's own time for each freeze, in whole ms. */
void phases_elapsed(struct phases *p, const char *line);
/* The length of a phase; -1 if its beginning or its end is missing. */
int64_t phase_ns(const struct phase *p);

#endif
