// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/agent.h"
#include "waits.h"

/* Of the free memory, for all rings; and the limits of each. */
#define MEMORY_SHARE 32
#define RING_PAGES_MIN 16
#define RING_PAGES_MAX 4096
/* Of stacks_add(): a wait is never "without interrupts". */
#define NO_PERIOD (INT64_MAX / 4)
/* Process 1 is the agent, which sleeps while the script runs. */
#define AGENT 1

/* As sample_type asks for it, in the order of perf_event_open(2). */
struct raw_sample {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint64_t nr;
	/* One more for the marker that says whose addresses follow. */
	uint64_t chain[SAMPLER_CHAIN_MAX + 1];
};

/* PERF_RECORD_SWITCH_CPU_WIDE, with what sample_id_all adds. */
struct raw_switch {
	struct perf_event_header header;
	uint32_t other_pid, other_tid;
	uint32_t pid, tid;
	uint64_t time_ns;
};

union raw_record {
	struct perf_event_header header;
	struct raw_sample sample;
	struct raw_switch change;
};

struct watched_cpu {
	int fd;
	struct perf_ring ring;
	union raw_record
		next; /* that was read, and is not yet used; its size is 0 if there is none */
	/* The chain of the last switch, which belongs to the record that follows it. */
	int nr;
	uint64_t chain[SAMPLER_CHAIN_MAX];
};

static struct watched_cpu *cpus;
static int nr_cpus;
static struct open_waits waiting;
static struct stacks stacks;
static struct symbols symbols;
static int64_t from_ns, to_ns, nr_waits;
static int read_error; /* the first one, which waits_report() returns */

static int open_event(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CONTEXT_SWITCHES,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
		.read_format = PERF_FORMAT_LOST,
		.disabled = 1,
		.exclude_callchain_user = 1,
		.sample_id_all = 1,
		.context_switch = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static size_t ring_pages(void)
{
	size_t wanted = sysconf(_SC_AVPHYS_PAGES) / MEMORY_SHARE / nr_cpus, pages = RING_PAGES_MIN;

	while (pages * 2 <= wanted && pages < RING_PAGES_MAX)
		pages *= 2;
	return pages;
}

int waits_open(void)
{
	int possible = sysconf(_SC_NPROCESSORS_CONF), cpu, fd, i;
	int error = symbols.nr ? 0 : symbols_load(&symbols);
	size_t pages;

	cpus = calloc(possible, sizeof(*cpus));
	if (!cpus)
		return -ENOMEM;
	for (cpu = 0; !error && cpu < possible; cpu++) {
		fd = open_event(cpu);
		if (fd >= 0)
			cpus[nr_cpus++].fd = fd;
		else if (fd != -ENODEV) /* which is one that is offline */
			error = fd;
	}
	pages = nr_cpus ? ring_pages() : 0;
	for (i = 0; !error && i < nr_cpus; i++)
		error = perf_ring_open(&cpus[i].ring, cpus[i].fd, pages);
	if (error)
		waits_close();
	return error;
}

void waits_start(void)
{
	int i;

	from_ns = now_ns();
	nr_waits = 0;
	read_error = 0;
	for (i = 0; i < nr_cpus; i++)
		ioctl(cpus[i].fd, PERF_EVENT_IOC_ENABLE, 0);
}

static bool is_sample(const union raw_record *r)
{
	return r->header.type == PERF_RECORD_SAMPLE;
}

static bool is_switch(const union raw_record *r)
{
	return r->header.type == PERF_RECORD_SWITCH_CPU_WIDE &&
	       r->header.size >= sizeof(struct raw_switch);
}

/* Fetches the next sample or switch of a CPU, unless one is there. 0 or -errno. */
static int fetch(struct watched_cpu *c)
{
	int len = 1;

	while (!c->next.header.size) {
		len = perf_ring_next(&c->ring, &c->next, sizeof(c->next));
		if (len <= 0)
			break;
		if (!is_sample(&c->next) && !is_switch(&c->next))
			c->next.header.size = 0;
	}
	return len < 0 ? len : 0;
}

static int64_t time_of(const union raw_record *r)
{
	return is_sample(r) ? r->sample.time_ns : r->change.time_ns;
}

static void keep_chain(struct watched_cpu *c, const struct raw_sample *sample)
{
	uint64_t i;

	c->nr = 0;
	for (i = 0; i < sample->nr && i < SAMPLER_CHAIN_MAX + 1 && c->nr < SAMPLER_CHAIN_MAX; i++)
		/* The largest numbers are markers. */
		if (sample->chain[i] < (uint64_t)PERF_CONTEXT_MAX)
			c->chain[c->nr++] = sample->chain[i];
}

static int add(const struct open_wait *w, int64_t until_ns)
{
	/* One that began while the events were disabled has no time. */
	int64_t ns = until_ns > w->from_ns ? until_ns - w->from_ns : 0;
	struct cpu_sample sample = {.ns = ns, .nr = w->nr};

	memcpy(sample.chain, w->chain, w->nr * sizeof(*w->chain));
	nr_waits++;
	return stacks_add(&stacks, &symbols, &sample, NO_PERIOD);
}

static int use_switch(struct watched_cpu *c, const struct raw_switch *change)
{
	bool out = change->header.misc & PERF_RECORD_MISC_SWITCH_OUT;
	/* It still wants the CPU. */
	bool preempted = change->header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	struct open_wait *w;
	int nr = c->nr, error = 0;

	if (out)
		c->nr = 0;
	if (!change->tid || change->tid == AGENT)
		return 0; /* the idle task, or we */
	if (out)
		return nr && !preempted ? open_waits_begin(&waiting, change->tid, change->time_ns,
							   c->chain, nr)
					: 0;
	w = open_waits_end(&waiting, change->tid);
	if (w) {
		error = add(w, change->time_ns);
		w->nr = 0;
	}
	return error;
}

/* Uses the oldest record of all CPUs: a task may sleep on one and wake up on another. */
static int use_oldest(struct watched_cpu *c)
{
	union raw_record r = c->next;

	c->next.header.size = 0;
	if (is_switch(&r))
		return use_switch(c, &r.change);
	keep_chain(c, &r.sample);
	return 0;
}

/*
 * The CPU with the oldest record until then_ns; NULL if there is none. What comes later waits: a
 * CPU that was looked at first may have older ones by then.
 */
static struct watched_cpu *find_oldest(int64_t then_ns)
{
	struct watched_cpu *oldest = NULL;
	int i;

	for (i = 0; !read_error && i < nr_cpus; i++) {
		read_error = fetch(&cpus[i]);
		if (cpus[i].next.header.size && time_of(&cpus[i].next) <= then_ns &&
		    (!oldest || time_of(&cpus[i].next) < time_of(&oldest->next)))
			oldest = &cpus[i];
	}
	return read_error ? NULL : oldest;
}

static void read_until(int64_t then_ns)
{
	struct watched_cpu *c;

	while ((c = find_oldest(then_ns)))
		read_error = use_oldest(c);
}

void waits_read(void)
{
	read_until(now_ns());
}

void waits_stop(void)
{
	int i;

	to_ns = now_ns();
	for (i = 0; i < nr_cpus; i++)
		ioctl(cpus[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

static int64_t count_lost(void)
{
	uint64_t counts[2]; /* in the order of PERF_FORMAT_LOST */
	int64_t lost = 0;
	int i;

	for (i = 0; i < nr_cpus; i++)
		if (!read_all(cpus[i].fd, counts, sizeof(counts)))
			lost += counts[1];
	return lost;
}

struct place {
	int trial, repetition;
};

static void send(void *to, const char *text, int64_t count, int64_t ns)
{
	const struct place *place = to;
	struct line l;

	line_begin(&l, "wait");
	line_int(&l, "trial", place->trial);
	line_int(&l, "repetition", place->repetition);
	line_str(&l, "stack", text);
	line_int(&l, "count", count);
	line_int(&l, "ns", ns);
	line_send(&l);
}

int waits_report(int trial, int repetition)
{
	struct place place = {trial, repetition};
	struct line l;
	int error;
	size_t i;

	read_until(INT64_MAX);
	error = read_error;
	for (i = 0; !error && i < waiting.room; i++)
		if (waiting.all[i].tid && waiting.all[i].nr)
			error = add(&waiting.all[i], to_ns);
	if (error)
		return error;
	line_begin(&l, "waits");
	line_int(&l, "trial", trial);
	line_int(&l, "repetition", repetition);
	line_int(&l, "stretch_ns", to_ns - from_ns);
	line_int(&l, "waits", nr_waits);
	line_int(&l, "lost", count_lost());
	line_send(&l);
	return stacks_report(&stacks, &symbols, send, &place);
}

void waits_close(void)
{
	while (nr_cpus) {
		struct watched_cpu *c = &cpus[--nr_cpus];

		perf_ring_close(&c->ring);
		close(c->fd);
	}
	free(cpus);
	cpus = NULL;
	open_waits_free(&waiting);
	stacks_free(&stacks);
}
