/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What every CPU executes, sampled at a fixed period: perf's software clock, for all
 * tasks, with the kernel's call chain. It needs no performance counters, and on the
 * instruction clock the same guest gives the same samples.
 *
 * The clock is a timer interrupt. While interrupts are off it is delayed until they are on
 * again, and one interrupt then replaces all that were missed. Therefore each sample has
 * the time since the CPU's previous one.
 */
#ifndef KTEARDOWN_SAMPLER_H
#define KTEARDOWN_SAMPLER_H

#include "perf_ring.h"
#include "workload.h"

/*
 * The kernel's limits: the shortest period (perf_swevent_hrtimer), and the longest chain
 * (perf_event_max_stack).
 */
#define SAMPLER_PERIOD_MIN_NS 10000
#define SAMPLER_CHAIN_MAX 127

struct sampled_cpu {
	int fd;
	struct perf_ring ring;
	int64_t last_ns; /* of the last sample that was read */
};

struct sampler {
	struct sampled_cpu *cpus;
	int nr, reading;
	int64_t period_ns;
	int64_t from_ns, to_ns; /* the stretch that is sampled */
};

struct cpu_sample {
	/* Since the previous sample of the CPU, or since the beginning of the stretch. */
	int64_t ns;
	bool idle_task, user;
	int nr;
	/* Innermost first; all but the first are return addresses. */
	uint64_t chain[SAMPLER_CHAIN_MAX];
};

/*
 * Opens the sampler on all online CPUs; it does not sample yet. 0 or -errno: -ENOENT,
 * -ENOSYS if the kernel has no such clock.
 */
int sampler_open(struct sampler *s, int64_t period_ns);
void sampler_close(struct sampler *s);
/* Starts sampling. The stretch begins lead_ns later, so that the caller chooses its phase. */
void sampler_start(struct sampler *s, int64_t lead_ns);
void sampler_stop(struct sampler *s);
/* Reads the next sample of the stretch, CPU after CPU: 1; 0 at the end; -EPROTO. */
int sampler_next(struct sampler *s, struct cpu_sample *sample);
/*
 * How many samples were lost because a ring was full. They are missing from the end of the
 * stretch.
 */
int64_t sampler_lost(const struct sampler *s);

#endif
