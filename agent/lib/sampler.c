// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sampler.h"

#define MAX_RATE "/proc/sys/kernel/perf_event_max_sample_rate"
#define MAX_RATE_NONE 1000000000
/* All rings together take this fraction of the free memory, and each at most 64 MB. */
#define MEMORY_SHARE 16
#define RING_PAGES_MIN 16
#define RING_PAGES_MAX 16384

/* The layout of a sample that sample_type below asks for, in the order of perf_event_open(2). */
struct raw_sample {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint64_t nr;
	uint64_t chain[SAMPLER_CHAIN_MAX +
		       1]; /* plus one marker, which says that the chain is the kernel's */
};

static int open_event(int cpu, int64_t period_ns)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
		.read_format = PERF_FORMAT_LOST,
		.disabled = 1,
		.exclude_callchain_user = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static size_t ring_pages(int cpus)
{
	size_t wanted = sysconf(_SC_AVPHYS_PAGES) / MEMORY_SHARE / cpus, pages = RING_PAGES_MIN;

	while (pages * 2 <= wanted && pages < RING_PAGES_MAX)
		pages *= 2;
	return pages;
}

static int open_cpus(struct sampler *s, int possible, int64_t period_ns)
{
	int cpu, fd;

	for (cpu = 0; cpu < possible; cpu++) {
		fd = open_event(cpu, period_ns);
		if (fd == -ENODEV)
			continue; /* offline */
		if (fd < 0)
			return fd;
		s->cpus[s->nr++].fd = fd;
	}
	return s->nr ? 0 : -ENODEV;
}

int sampler_open(struct sampler *s, int64_t period_ns)
{
	int possible = sysconf(_SC_NPROCESSORS_CONF), i, error;
	size_t pages;

	memset(s, 0, sizeof(*s));
	s->period_ns = period_ns;
	s->cpus = calloc(possible, sizeof(*s->cpus));
	if (!s->cpus)
		return -ENOMEM;
	/*
	 * The kernel limits the rate because samples could take all of a CPU's time; here the
	 * period is chosen on purpose. The kernel applies the limit to the samples between two
	 * timer ticks, and an idle CPU has no tick for seconds.
	 */
	write_file(MAX_RATE, "%d", MAX_RATE_NONE);
	error = open_cpus(s, possible, period_ns);
	pages = error ? 0 : ring_pages(s->nr);
	for (i = 0; !error && i < s->nr; i++)
		error = perf_ring_open(&s->cpus[i].ring, s->cpus[i].fd, pages);
	if (error)
		sampler_close(s);
	return error;
}

void sampler_close(struct sampler *s)
{
	while (s->nr) {
		struct sampled_cpu *c = &s->cpus[--s->nr];

		perf_ring_close(&c->ring);
		close(c->fd);
	}
	free(s->cpus);
	s->cpus = NULL;
}

/* Without sleeping: a sleep would change the state in which the stretch begins. */
static void spin_until(int64_t ns)
{
	while (now_ns() < ns)
		;
}

void sampler_start(struct sampler *s, int64_t lead_ns)
{
	int64_t begin_ns = now_ns();
	int i;

	/*
	 * The CPUs are started one after the other within the first period. If QEMU runs all
	 * virtual CPUs in one thread, a virtual CPU whose timer expires hands over to the next
	 * one. With all timers at the same moment, the same CPU would never run.
	 */
	for (i = 0; i < s->nr; i++) {
		spin_until(begin_ns + s->period_ns * i / s->nr);
		ioctl(s->cpus[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	s->from_ns = begin_ns + s->period_ns + lead_ns;
	spin_until(s->from_ns);
	for (i = 0; i < s->nr; i++)
		s->cpus[i].last_ns = s->from_ns;
	s->reading = 0;
}

void sampler_stop(struct sampler *s)
{
	int i;

	s->to_ns = now_ns();
	for (i = 0; i < s->nr; i++)
		ioctl(s->cpus[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

/*
 * Converts a record of the ring to a sample; false if it is another record, or not from
 * the stretch.
 */
static bool to_sample(struct sampler *s, struct sampled_cpu *c, const struct raw_sample *raw,
		      struct cpu_sample *sample)
{
	int64_t time_ns = raw->time_ns;
	uint64_t i, nr = raw->nr < SAMPLER_CHAIN_MAX + 1 ? raw->nr : SAMPLER_CHAIN_MAX + 1;

	if (raw->header.type != PERF_RECORD_SAMPLE || time_ns <= s->from_ns || time_ns > s->to_ns)
		return false;
	sample->ns = time_ns - c->last_ns;
	c->last_ns = time_ns;
	sample->idle_task = raw->tid == 0;
	sample->user = (raw->header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
	sample->nr = 0;
	for (i = 0; i < nr && sample->nr < SAMPLER_CHAIN_MAX; i++)
		/*
		 * The largest numbers are not addresses but markers: they say whether kernel or
		 * user addresses follow.
		 */
		if (raw->chain[i] < (uint64_t)PERF_CONTEXT_MAX)
			sample->chain[sample->nr++] = raw->chain[i];
	return true;
}

int sampler_next(struct sampler *s, struct cpu_sample *sample)
{
	struct raw_sample raw;
	int len;

	for (; s->reading < s->nr; s->reading++) {
		struct sampled_cpu *c = &s->cpus[s->reading];

		while ((len = perf_ring_next(&c->ring, &raw, sizeof(raw))) > 0)
			if (to_sample(s, c, &raw, sample))
				return 1;
		if (len < 0)
			return len;
	}
	return 0;
}

int64_t sampler_lost(const struct sampler *s)
{
	/* In the order of PERF_FORMAT_LOST. */
	uint64_t counts[2];
	int64_t lost = 0;
	int i;

	for (i = 0; i < s->nr; i++)
		if (!read_all(s->cpus[i].fd, counts, sizeof(counts)))
			lost += counts[1];
	return lost;
}
