/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Victims: tasks in cgroups with a CPU quota, each of them a process of its own. Their CPU
 * time shows whether the kernel runs them.
 *
 * Each function checks whether a state is reached within a time limit. On a host that
 * stops the guest for a while, nothing else can be checked.
 */
#ifndef KTEARDOWN_VICTIMS_H
#define KTEARDOWN_VICTIMS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "workload.h"

#define MAX_VICTIMS 64
#define VICTIM_EXIT_OK 40 /* the exit code of a victim that was asked to finish */
#define QUOTA_PATIENCE_MS 45000
/*
 * A killed task exits when it gets quota. On a slow host, with 4% of a CPU for a dozen
 * tasks that are in the kernel for long, that once took more than 45 s.
 */
#define QUOTA_DEATH_MS 120000

/* What victims and disturbers share. */
struct victims_shared {
	_Atomic bool finish; /* victims: exit */
	_Atomic bool stop; /* disturbers: stop, and exit */
	_Atomic bool spin; /* whether VICTIM_SWITCHED spins */
	_Atomic pid_t pids[MAX_VICTIMS]; /* 0: none */
	/* Of each victim: incremented after each step of its work. */
	_Atomic uint64_t progress[MAX_VICTIMS];
	_Atomic int not_removed; /* cgroups that could not be removed */
};

extern struct victims_shared *victims_shared;

#define EACH_VICTIM(pid)                                                                           \
	for (int each_ = 0, pid; each_ < MAX_VICTIMS; each_++)                                     \
		if ((pid = victims_shared->pids[each_]))

enum victim_work {
	VICTIM_SPIN, /* in user space all the time */
	VICTIM_LIST, /* in the kernel nearly all the time, with a lock held */
	VICTIM_FORK,
	VICTIM_MAP,
	VICTIM_NAP,
	VICTIM_RING, /* in user space, with requests of io_uring that never complete */
	VICTIM_WORKS, /* how many of these there are */
	VICTIM_SWITCHED, /* spins or sleeps, as victims_shared->spin says */
	VICTIM_CALL, /* in one long system call after the other */
	VICTIM_CROWD, /* a thousand threads in user space */
	/* They sleep, while threads of the kernel work for them on CPU 0: */
	VICTIM_POLLED, /* poll a ring of io_uring */
	VICTIM_READS, /* do long reads for io_uring */
	/* They have long requests in the ring that was shared last: */
	VICTIM_WRITES,
	VICTIM_READ,
	VICTIM_EXECS, /* when the read has ended it has done a step, and then calls execve() */
};

/* Sets up the shared memory, and a folder for VICTIM_LIST; 0 or -errno. */
int victims_setup(void);
void victims_cleanup(void);

/* Starts a victim with this index, in the cgroup from the beginning. 0 or -errno. */
int victim_put(int place, enum victim_work work, const char *cgroup);
/* Call this when a process was reaped. Returns the victim's index, or -1 if it was not a victim. */
int victim_gone(pid_t pid);
int victim_move(pid_t pid, const char *cgroup);
/* Binds all of them to this CPU; -1: to both. */
void victims_pin(int cpu);
/* Binds the main thread of one of them. */
void victim_pin(int place, int cpu);

/* The CPU time of a process in ns, -1 if it does not exist. */
int64_t victim_cpu_ns(pid_t pid);
/* True if each gets CPU time that only a task gets that is not throttled. */
bool victims_run(void);
/*
 * NULL if each makes progress, including those that need little CPU time; or the place of
 * the first that does not, its state, and the CPU time that it got.
 */
const char *victims_stuck(void);
/* True if for some time none of them gets more than its share of the smallest quota. */
bool victims_throttled(void);
/* Ends all of them and reaps them: asks them to finish, or kills them. False if some are left. */
bool victims_end(bool kill_them);
/*
 * How many are left, and for the first few their states, their cgroups and their CPU time
 * in two seconds.
 */
const char *victims_left(void);

/* Sets a quota in the format of cpu.max ("2000 200000", "max"). 0 or -errno. */
int quota_set(const char *cgroup, const char *quota);
/* Enables quotas for the cgroups below. 0 or -errno. */
int quota_allow_below(const char *cgroup);
#define QUOTA_SMALLEST "2000 200000"

#endif
