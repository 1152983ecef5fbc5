/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tasks in cgroups with a CPU quota, each a process of its own, and whether the
 * kernel lets them run: by the CPU time that they get.
 *
 * What is asked of them is always "does it come to that within the limit?" On a
 * host that stops the guest for a while nothing else can be known.
 */
#ifndef KTEARDOWN_VICTIMS_H
#define KTEARDOWN_VICTIMS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "workload.h"

#define MAX_VICTIMS 64
#define VICTIM_EXIT_OK 40 /* exit code of one that was told to finish */
#define QUOTA_PATIENCE_MS 45000
/* Who is killed dies when there is quota. On a slow host, with 4% of a CPU for a dozen tasks that
 * are long in the kernel, that was more than 45 s once. */
#define QUOTA_DEATH_MS 120000

/* What victims and those who trouble them share. */
struct victims_shared {
	_Atomic bool finish; /* victims: exit */
	_Atomic bool stop; /* those who trouble them: let them be, and exit */
	_Atomic bool spin; /* the victim that does as it is told */
	_Atomic pid_t pids[MAX_VICTIMS]; /* 0: none */
	_Atomic uint64_t progress[MAX_VICTIMS]; /* of each, whenever it gets around to it */
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
	VICTIM_WORKS, /* how many of these there are */
	VICTIM_SWITCHED, /* spins or naps as the scene says */
};

/* The scene, and a folder for VICTIM_LIST; 0 or -errno. */
int victims_setup(void);
void victims_cleanup(void);

/* Put one at this place of the scene, born in the cgroup. 0 or -errno. */
int victim_put(int place, enum victim_work work, const char *cgroup);
/* What victim_put() started is gone, and has been waited for. Its place, -1: it was none. */
int victim_gone(pid_t pid);
int victim_move(pid_t pid, const char *cgroup);
/* All on this CPU; -1: on both. */
void victims_pin(int cpu);

/* The CPU time of a process in ns, -1 where there is none. */
int64_t victim_cpu_ns(pid_t pid);
/* Each gets CPU time, as only one that is not throttled can. */
bool victims_run(void);
/* Each gets around to something, those too that need little CPU. */
bool victims_progress(void);
/* For a stretch of time none of them gets more than its share of the smallest quota. */
bool victims_throttled(void);
/* All are gone, and were waited for: told to finish, or killed. False: some are not. */
bool victims_end(bool kill_them);
/* How many are left, and for the first few their states, cgroups and the CPU time of two seconds
 * that they get now. */
const char *victims_left(void);

/* A quota, as cpu.max has it ("2000 200000", "max"). 0 or -errno. */
int quota_set(const char *cgroup, const char *quota);
/* Let the cgroups below have quotas. 0 or -errno. */
int quota_allow_below(const char *cgroup);
#define QUOTA_SMALLEST "2000 200000"

#endif
