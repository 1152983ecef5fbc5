/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Victims: processes in the states in which a signal to their process group
 * can find them, each with something that its exit has to wait for, or that
 * waits for its exit.
 */
#ifndef KTEARDOWN_TARGETS_H
#define KTEARDOWN_TARGETS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "workload.h"

#define CG "/sys/fs/cgroup/"
#define CG_FROZEN CG "frozen" /* frozen when the signal comes */
#define CG_STARVED CG "starved" /* may run for 2 ms of each 100 */
#define CG_SMALL CG "small" /* 16 MB of memory */

/* What all share. */
struct targets_shared {
	_Atomic int ready; /* victims that are in their state, or about to enter it */
	_Atomic bool go; /* the signal comes: do what is to coincide with it */
	_Atomic pid_t key; /* on whose exit FUSE waits */
	_Atomic pid_t traced, tracer_ready; /* by a process outside of the group */
	_Atomic int saw_exit_event;
	_Atomic uint32_t futex; /* a robust one, owned by a victim */
	_Atomic int futex_died;
};

struct target_kind {
	const char *name;
	void (*body)(struct targets_shared *s); /* never returns */
	int copies;
	char state; /* to be waited for after the start; 0: any */
};

/* Ended by a NULL name. */
extern const struct target_kind target_kinds[];

/* Make the cgroups, and remove them; -errno. */
int targets_prepare(void);
void targets_restore(void);

/* A victim of the kind, in the group pgrp (0: one of its own). Its pid, or -1. */
pid_t target_start(const struct target_kind *kind, struct targets_shared *s, pid_t pgrp);

/* Processes outside of the group, for the length of a round. */
void outside_tracer(struct targets_shared *s);
void outside_futex_waiter(struct targets_shared *s);

#endif
