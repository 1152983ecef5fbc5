// SPDX-License-Identifier: GPL-2.0
/*
 * Counts events of the processor in the stretch of each repetition, and reports them as metrics.
 *
 * The counters are opened just before the stretch and not once for a trial, since processes that a
 * workload makes inherit what is open, and would close it within the stretch if they exit there.
 * They are reported after run(), since a workload may still measure after its stretch. Workloads
 * take their times between wl_profile_begin() and wl_profile_end(): neither opening nor switching
 * is in them.
 */
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/agent.h"
#include "counts/counters.h"

#define DTLB_READ_MISS                                                                             \
	(PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_READ << 8 |                             \
	 PERF_COUNT_HW_CACHE_RESULT_MISS << 16)

static const struct {
	uint32_t type;
	uint64_t config;
	const char *metric;
} kinds[COUNTED_KINDS] = {
	[INSTRUCTIONS] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "instructions_count"},
	[CYCLES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles_count"},
	[CACHE_MISSES] = {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, "cache_misses_count"},
	[DTLB_MISSES] = {PERF_TYPE_HW_CACHE, DTLB_READ_MISS, "dtlb_misses_count"},
};

static struct counters counters;
static bool counting;
/* The trial of which this repetition has counted; NULL: it has not. */
static struct trial *counted;

static int open_event(enum counted kind, int cpu, int leader)
{
	struct perf_event_attr attr = {
		.type = kinds[kind].type,
		.size = sizeof(attr),
		.config = kinds[kind].config,
		.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
			       PERF_FORMAT_TOTAL_TIME_RUNNING,
		/* The others of a group count if its leader does. */
		.disabled = leader < 0,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, cpu, leader, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void fail(struct trial *t, int error)
{
	if (error == -ENODATA)
		wl_fail(t, "hardware counts: this guest has a counter neither of instructions nor "
			   "of cycles; leave out --counts, or use a host whose counters guests can "
			   "have (kteardown doctor)");
	else
		wl_fail(t, "hardware counts: perf_event_open: %s; leave out --counts",
			strerror(-error));
}

void counts_begin(struct trial *t)
{
	int error;

	if (counted)
		return;
	error = counters_open(&counters, sysconf(_SC_NPROCESSORS_CONF), open_event);
	if (error) {
		fail(t, error);
		return;
	}
	counted = t;
	counting = true;
	counters_start(&counters);
}

void counts_end(void)
{
	if (counting)
		counters_stop(&counters);
	counting = false;
}

static void sample(struct trial *t, const struct counts *c)
{
	int kind;

	for (kind = 0; kind < COUNTED_KINDS; kind++)
		if (c->known[kind])
			wl_sample(t, kinds[kind].metric, c->values[kind]);
	if (c->known[INSTRUCTIONS] && c->known[CYCLES] && c->values[CYCLES])
		wl_sample_ratio(t, "instructions_per_cycle", c->values[INSTRUCTIONS],
				c->values[CYCLES]);
}

static void report(struct trial *t)
{
	struct counts counts;
	int error = counters_take(&counters, &counts);

	counters_close(&counters);
	if (error)
		wl_fail(t, "hardware counts: the counters cannot be read: %s", strerror(-error));
	else if (wl_check(t, "counted", counts.whole && counts_plausible(&counts),
			  "%lld of %lld ns: %lld instructions, %lld cycles",
			  (long long)counts.running_ns, (long long)counts.enabled_ns,
			  (long long)counts.values[INSTRUCTIONS], (long long)counts.values[CYCLES]))
		sample(t, &counts);
}

void counts_report(void)
{
	counts_end();
	if (counted)
		report(counted);
	counted = NULL;
}
