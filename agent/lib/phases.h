/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The phases of a suspend, out of what the kernel says while it does it. Pure:
 * whoever reads tracepoints or the log feeds the messages in, in order.
 *
 * Linux 6.1 writes "Freezing user space processes ... ", then "(elapsed 0.001
 * seconds) " and "done."; since 6.2 it is "Freezing user space processes", then
 * "Freezing user space processes completed (elapsed 0.001 seconds)". Both are read.
 */
#ifndef KTEARDOWN_PHASES_H
#define KTEARDOWN_PHASES_H

#include "workload.h"

struct phase {
	int64_t start_ns, end_ns; /* -1: not seen */
};

struct phases {
	struct phase user, remaining, thaw;
	struct phase *open; /* the freeze that began and did not end yet */
	int64_t elapsed_user_ns, elapsed_remaining_ns; /* as the kernel logged it; -1: not seen */
};

void phases_init(struct phases *p);
/* A message of the kernel, stamped when it was written: where the freezes begin and end. */
void phases_freeze(struct phases *p, int64_t time_ns, const char *message);
/*
 * The thaw out of messages alone: from "Restarting tasks" to "suspend exit",
 * and so with the suspend notifiers in it, which the tracepoint leaves out.
 */
void phases_thaw(struct phases *p, int64_t time_ns, const char *message);
/* A whole line of the kernel's log: the kernel's own measure of its freezes, in whole ms. */
void phases_elapsed(struct phases *p, const char *line);
/* How long a phase took; -1 where its beginning or its end is missing. */
int64_t phase_ns(const struct phase *p);

#endif
