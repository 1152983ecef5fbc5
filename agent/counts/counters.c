// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "counters.h"

/* Before the counts in what read() gives. */
enum { READ_NR, READ_ENABLED, READ_RUNNING, READ_COUNTS };

/* More than starting a group takes, less than the shortest turn of groups that share counters. */
#define STARTING_NS 100000

/*
 * The errors with which the kernel refuses an event that the processor does not have, or that does
 * not fit into the group any more.
 */
static bool absent(int error)
{
	return error == -ENOENT || error == -EOPNOTSUPP || error == -EINVAL;
}

/* 0 or -errno: -ENODEV if the CPU is offline. */
static int open_group(struct counted_cpu *c, counter_opener *open_event)
{
	int kind, fd;

	c->leader = -1;
	for (kind = 0; kind < COUNTED_KINDS; kind++) {
		fd = open_event(kind, c->cpu, c->leader);
		c->fds[kind] = fd < 0 ? -1 : fd;
		if (fd < 0 && !absent(fd))
			return fd;
		if (c->leader < 0)
			c->leader = c->fds[kind];
		if (kind == CYCLES && c->leader < 0)
			return -ENODATA;
	}
	return 0;
}

static void close_group(struct counted_cpu *c)
{
	int kind;

	/* The leader last: without it the others would become groups of their own. */
	for (kind = COUNTED_KINDS - 1; kind >= 0; kind--)
		if (c->fds[kind] >= 0)
			close(c->fds[kind]);
}

int counters_open(struct counters *c, int possible, counter_opener *open_event)
{
	int cpu, error;

	c->nr = 0;
	c->cpus = calloc(possible, sizeof(*c->cpus));
	if (!c->cpus)
		return -ENOMEM;
	for (cpu = 0; cpu < possible; cpu++) {
		struct counted_cpu *next = &c->cpus[c->nr];

		next->cpu = cpu;
		memset(next->fds, -1, sizeof(next->fds));
		error = open_group(next, open_event);
		if (!error) {
			c->nr++;
			continue;
		}
		close_group(next);
		if (error != -ENODEV) {
			counters_close(c);
			return error;
		}
	}
	return c->nr ? 0 : -ENODATA;
}

void counters_close(struct counters *c)
{
	while (c->nr)
		close_group(&c->cpus[--c->nr]);
	free(c->cpus);
	c->cpus = NULL;
}

static void switch_cpus(const struct counters *c, unsigned long request, int own, bool is_own)
{
	int i;

	for (i = 0; i < c->nr; i++)
		if ((c->cpus[i].cpu == own) == is_own)
			ioctl(c->cpus[i].leader, request, PERF_IOC_FLAG_GROUP);
}

void counters_start(const struct counters *c)
{
	int own = sched_getcpu();

	switch_cpus(c, PERF_EVENT_IOC_ENABLE, own, false);
	switch_cpus(c, PERF_EVENT_IOC_ENABLE, own, true);
}

void counters_stop(const struct counters *c)
{
	int own = sched_getcpu();

	switch_cpus(c, PERF_EVENT_IOC_DISABLE, own, true);
	switch_cpus(c, PERF_EVENT_IOC_DISABLE, own, false);
}

bool counted_throughout(uint64_t enabled_ns, uint64_t running_ns)
{
	return enabled_ns == running_ns || (running_ns && enabled_ns - running_ns < STARTING_NS);
}

bool counts_plausible(const struct counts *counts)
{
	int kind;

	for (kind = INSTRUCTIONS; kind <= CYCLES; kind++)
		if (counts->known[kind] && !counts->values[kind])
			return false;
	return true;
}

void counts_init(struct counts *counts)
{
	memset(counts, 0, sizeof(*counts));
	memset(counts->known, true, sizeof(counts->known));
	counts->whole = true;
}

void counts_add(struct counts *counts, const struct counted_cpu *cpu, const uint64_t *group)
{
	uint64_t enabled = group[READ_ENABLED], running = group[READ_RUNNING];
	int kind, at = READ_COUNTS;

	for (kind = 0; kind < COUNTED_KINDS; kind++) {
		if (cpu->fds[kind] < 0)
			counts->known[kind] = false;
		else
			counts->values[kind] += group[at++];
	}
	counts->whole &= counted_throughout(enabled, running);
	if (!counts->enabled_ns || enabled - running > counts->enabled_ns - counts->running_ns) {
		counts->enabled_ns = enabled;
		counts->running_ns = running;
	}
}

int counters_take(const struct counters *c, struct counts *counts)
{
	uint64_t group[COUNTERS_READ_MAX];
	ssize_t len;
	int i;

	counts_init(counts);
	for (i = 0; i < c->nr; i++) {
		memset(group, 0, sizeof(group));
		len = read(c->cpus[i].leader, group, sizeof(group));
		if (len < 0)
			return -errno;
		/* Empty: the group is in an error state. */
		if (len < (ssize_t)(READ_COUNTS * sizeof(*group)))
			return -EIO;
		counts_add(counts, &c->cpus[i], group);
	}
	return 0;
}
