/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counters of the processor (perf_event_open) on every online CPU, for all tasks, user space and
 * kernel.
 *
 * The events of a CPU are one group, which the kernel counts together or not at all: so the counts
 * are of the same instructions, and none of them was extrapolated from a part of the time.
 */
#ifndef KTEARDOWN_COUNTERS_H
#define KTEARDOWN_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order in which they are opened: the most useful first, since a processor has few. */
enum counted { INSTRUCTIONS, CYCLES, CACHE_MISSES, DTLB_MISSES, COUNTED_KINDS };

/* What read() gives of a group: the number of its events, two times, and a count for each. */
#define COUNTERS_READ_MAX (3 + COUNTED_KINDS)

struct counted_cpu {
	int cpu, leader;
	int fds[COUNTED_KINDS]; /* -1: this CPU does not have it */
};

struct counters {
	struct counted_cpu *cpus;
	int nr;
};

/* What was counted since the counters were opened, on all CPUs together. */
struct counts {
	uint64_t values[COUNTED_KINDS];
	bool known[COUNTED_KINDS]; /* every CPU has a counter for it */
	bool whole; /* each group counted all the time, as far as the guest sees */
	/* How long a group was enabled, and counted: of the CPU where that differs most. */
	uint64_t enabled_ns, running_ns;
};

/*
 * Opens an event that does not count yet on a CPU, in the group of the event leader, or as the
 * first of a group (-1). Returns a file descriptor, or -errno.
 */
typedef int counter_opener(enum counted kind, int cpu, int leader);

/*
 * Opens what there is on each online CPU of possible ones. 0, or -errno: -ENODATA if a CPU has
 * neither a counter of instructions nor one of cycles.
 */
int counters_open(struct counters *c, int possible, counter_opener *open_event);
void counters_close(struct counters *c);
/*
 * Between these all CPUs count. The CPU of the caller is the last that starts and the first that
 * stops, so that little of both is counted.
 */
void counters_start(const struct counters *c);
void counters_stop(const struct counters *c);
/* While they are stopped. 0, or -errno if they cannot be read. */
int counters_take(const struct counters *c, struct counts *counts);

void counts_init(struct counts *counts);
/*
 * Adds what one CPU counted, as read() gives it. The events of its group are those of which it has
 * a file descriptor.
 */
void counts_add(struct counts *counts, const struct counted_cpu *cpu, const uint64_t *group);
/*
 * Whether what must have happened was counted: a counter of instructions or cycles that gives 0
 * does not count. The hypervisor gives that where the host has no counter left for the guest.
 */
bool counts_plausible(const struct counts *counts);
/*
 * Whether a group that was enabled for so long counted all the time: the kernel starts it some
 * microseconds after it enables it, and where counters are shared it is off for milliseconds.
 */
bool counted_throughout(uint64_t enabled_ns, uint64_t running_ns);

#endif
