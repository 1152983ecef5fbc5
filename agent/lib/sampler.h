/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where every CPU is, at a fixed period of its time: perf's software clock, for
 * all tasks, with the kernel's call chain. No performance counters are needed,
 * and on the instruction clock the same guest gives the same samples.
 *
 * The clock is a timer interrupt. Where interrupts are off it comes when they
 * are on again, one for all that were missed; each sample therefore says for
 * how long its CPU had none.
 */
#ifndef KTEARDOWN_SAMPLER_H
#define KTEARDOWN_SAMPLER_H

#include "perf_ring.h"
#include "workload.h"

/* The kernel takes no shorter one (perf_swevent_hrtimer), and no longer chain
 * (perf_event_max_stack). */
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
	int64_t ns; /* since the CPU's sample before, or since the stretch began */
	bool idle_task, user;
	int nr;
	uint64_t chain[SAMPLER_CHAIN_MAX]; /* innermost first; return addresses but the first */
};

/* On all online CPUs, stopped. 0 or -errno: -ENOENT, -ENOSYS where the kernel has no such clock. */
int sampler_open(struct sampler *s, int64_t period_ns);
void sampler_close(struct sampler *s);
/* The stretch begins lead_ns after the sampling, so that its phase is the caller's to choose. */
void sampler_start(struct sampler *s, int64_t lead_ns);
void sampler_stop(struct sampler *s);
/* 1 and the next sample of the stretch, CPU after CPU; 0 at the end; -EPROTO. */
int sampler_next(struct sampler *s, struct cpu_sample *sample);
/* How many samples found no room. They are missing from the stretch's end. */
int64_t sampler_lost(const struct sampler *s);

#endif
