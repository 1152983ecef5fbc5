/* SPDX-License-Identifier: GPL-2.0 */
/* The children of wait_stress, and threads that make and trace them. */
#ifndef KTEARDOWN_CHILDREN_H
#define KTEARDOWN_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/start_barrier.h"

#define ORPHANS 4 /* of a child that makes some; each second one exits at once */
#define LIMIT_MS 30000

enum kind {
	PLAIN,
	CLONED, /* reports with no signal, so it is waited for with __WCLONE or __WALL */
	THREADED, /* has two threads */
	PARENT, /* makes ORPHANS children and reaps none of them */
	NR_KINDS
};

/* Shared with a child. */
struct slot {
	struct start_barrier leader_exits, thread_executes;
	volatile bool ready;
	volatile pid_t orphans[ORPHANS];
};

/* Makes a child of the calling thread, in the process group `group`. -1: it failed. */
pid_t child_make(enum kind kind, struct slot *slot, pid_t group);
/* The first thread of a THREADED child exits; the other one lives on. */
bool child_leader_exits(pid_t pid, struct slot *slot);
/* The second thread of a THREADED child executes a program, and is its only thread then. */
bool child_thread_executes(pid_t pid, struct slot *slot);

/* A thread of this process, or of another, that does what the calling one asks for. */
struct helper {
	int orders[2], answers[2]; /* pipes */
	pid_t tid;
	pid_t process; /* 0: it is a thread of this one */
};

bool helper_start(struct helper *h, bool other_process);
pid_t helper_makes(struct helper *h, enum kind kind, struct slot *slot, pid_t group);
/* The tracee goes on. */
bool helper_traces(struct helper *h, pid_t pid);
/* Stops a tracee of the helper. */
bool helper_interrupts(struct helper *h, pid_t pid);
/* The thread exits, which ends its traces, and another takes its place. */
bool helper_renews(struct helper *h);
void helper_stop(struct helper *h);

#endif
