/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kill targets: processes in the states in which a signal to their process group can find
 * them. The exit of each has to wait for something, or something waits for its exit.
 */
#ifndef KTEARDOWN_TARGETS_H
#define KTEARDOWN_TARGETS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "workload.h"

#define CG "/sys/fs/cgroup/"
#define CG_FROZEN CG "frozen" /* frozen when the signal comes */
#define CG_THROTTLED CG "starved" /* may run for 2 ms of each 100 ms */
#define CG_SMALL CG "small" /* has 16 MB of memory */

/* What all processes share. */
struct targets_shared {
	_Atomic int ready; /* targets that are in their state, or about to enter it */
	_Atomic bool go; /* the signal comes: do now what is to coincide with it */
	_Atomic pid_t key; /* the FUSE server waits for its exit */
	_Atomic pid_t traced, tracer_ready; /* by a process outside the group */
	_Atomic int saw_exit_event;
	_Atomic uint32_t futex; /* a robust futex that a target owns */
	_Atomic int futex_died;
};

struct target_kind {
	const char *name;
	void (*body)(struct targets_shared *s); /* never returns */
	int copies;
	char state; /* the state to wait for after the start; 0: any */
};

/* Ended by a NULL name. */
extern const struct target_kind target_kinds[];

/* Make the cgroups, and remove them; -errno. */
int targets_prepare(void);
void targets_restore(void);

/* Starts a target of this kind in the group pgrp (0: a group of its own). Its pid, or -1. */
pid_t target_start(const struct target_kind *kind, struct targets_shared *s, pid_t pgrp);

/* The bodies of processes outside the group that run for one round. */
void outside_tracer(struct targets_shared *s);
void outside_futex_waiter(struct targets_shared *s);

#endif
