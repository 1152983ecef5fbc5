// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "counts/counters.h"
#include "tests/test.h"

#define CPUS 3

/* What each event of a CPU answers: -errno, or 0 for a file descriptor. */
static int answers[CPUS][COUNTED_KINDS];
/* For each event that was asked for, its kind, its CPU, and whether it begins a group. */
static char asked[200];

static int open_event(enum counted kind, int cpu, int leader)
{
	int answer = answers[cpu][kind];

	sprintf(asked + strlen(asked), "%d@%d%s ", kind, cpu, leader < 0 ? "!" : "");
	return answer ? answer : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int opened(struct counters *c)
{
	asked[0] = '\0';
	return counters_open(c, CPUS, open_event);
}

static void answer(int kind, int error)
{
	int cpu;

	memset(answers, 0, sizeof(answers));
	for (cpu = 0; cpu < CPUS && kind >= 0; cpu++)
		answers[cpu][kind] = error;
}

static void everything(void)
{
	struct counters c;

	answer(-1, 0);
	CHECK(opened(&c) == 0 && c.nr == CPUS);
	CHECK_TEXT(asked, "0@0! 1@0 2@0 3@0 0@1! 1@1 2@1 3@1 0@2! 1@2 2@2 3@2 ");
	CHECK(c.cpus[2].cpu == 2 && c.cpus[2].leader == c.cpus[2].fds[INSTRUCTIONS]);
	counters_close(&c);
	CHECK(c.nr == 0 && !c.cpus);
}

static void parts(void)
{
	static const int absent[] = {-ENOENT, -EOPNOTSUPP, -EINVAL};
	struct counters c;
	size_t i;

	for (i = 0; i < sizeof(absent) / sizeof(*absent); i++) {
		answer(DTLB_MISSES, absent[i]);
		CHECK(opened(&c) == 0 && c.cpus[0].fds[DTLB_MISSES] == -1);
		CHECK(c.cpus[0].fds[CACHE_MISSES] >= 0);
		counters_close(&c);
	}
	/* Cycles lead where instructions cannot be counted. */
	answer(INSTRUCTIONS, -ENOENT);
	CHECK(opened(&c) == 0 && c.cpus[0].leader == c.cpus[0].fds[CYCLES]);
	CHECK(!strncmp(asked, "0@0! 1@0! 2@0 3@0 ", 18));
	counters_close(&c);
	/* An offline CPU has no counters, which is not an error. */
	answer(-1, 0);
	answers[1][INSTRUCTIONS] = -ENODEV;
	CHECK(opened(&c) == 0 && c.nr == 2 && c.cpus[1].cpu == 2);
	counters_close(&c);
}

static void none(void)
{
	struct counters c;

	answer(INSTRUCTIONS, -ENOENT);
	answers[2][CYCLES] = -EOPNOTSUPP;
	CHECK(opened(&c) == -ENODATA && !c.cpus);
	answer(CACHE_MISSES, -EMFILE);
	CHECK(opened(&c) == -EMFILE && !c.cpus);
	answer(INSTRUCTIONS, -ENODEV);
	CHECK(opened(&c) == -ENODATA);
	counters_close(&c);
}

static void sums(void)
{
	const struct counted_cpu all = {.fds = {3, 4, 5, 6}}, few = {.fds = {7, 8, -1, 9}};
	struct counts c;

	counts_init(&c);
	/* As an EPYC gave it for `true`: four events, two times, the counts in the order of
	 * opening. */
	counts_add(&c, &all, (uint64_t[]){4, 412345, 412345, 1500000, 1200000, 9000, 1100});
	CHECK(c.values[CACHE_MISSES] == 9000 && c.known[CACHE_MISSES]);
	counts_add(&c, &few, (uint64_t[]){3, 412999, 412001, 500000, 800000, 900});
	CHECK(c.values[INSTRUCTIONS] == 2000000 && c.values[CYCLES] == 2000000);
	CHECK(c.values[DTLB_MISSES] == 2000 && c.known[DTLB_MISSES]);
	/* One CPU cannot count them, so there is no sum of all. */
	CHECK(!c.known[CACHE_MISSES]);
	CHECK(c.whole && c.enabled_ns == 412999 && c.running_ns == 412001);
	/* More than 2^32. */
	counts_add(&c, &all, (uint64_t[]){4, 412345, 412345, 1ULL << 40, 0, 0, 0});
	CHECK(c.values[INSTRUCTIONS] == (1ULL << 40) + 2000000);
}

static void shared(void)
{
	const struct counted_cpu cpu = {.fds = {3, 4, -1, -1}};
	struct counts c;

	CHECK(counted_throughout(0, 0));
	CHECK(counted_throughout(20000, 19000));
	CHECK(!counted_throughout(20000, 0));
	/* Half of the time, in turns of four milliseconds. */
	CHECK(!counted_throughout(8000000, 4000000));
	CHECK(!counted_throughout(1000000000, 996000000));
	counts_init(&c);
	counts_add(&c, &cpu, (uint64_t[]){2, 8000000, 4000000, 10, 20});
	counts_add(&c, &cpu, (uint64_t[]){2, 8000000, 8000000, 10, 20});
	CHECK(!c.whole && c.running_ns == 4000000);
}

static void dead(void)
{
	const struct counted_cpu cpu = {.fds = {3, 4, 5, -1}}, one = {.fds = {-1, 4, -1, -1}};
	struct counts c;

	counts_init(&c);
	counts_add(&c, &cpu, (uint64_t[]){3, 500, 500, 10, 20, 0});
	CHECK(counts_plausible(&c));
	counts_init(&c);
	counts_add(&c, &cpu, (uint64_t[]){3, 500, 500, 0, 20, 0});
	CHECK(c.whole && !counts_plausible(&c));
	counts_init(&c);
	counts_add(&c, &one, (uint64_t[]){1, 500, 500, 20});
	CHECK(counts_plausible(&c));
}

/* What a group gives is read from its first event. */
static void reading(void)
{
	const uint64_t group[] = {2, 700, 700, 30, 60};
	struct counted_cpu cpu = {.fds = {0, 0, -1, -1}};
	struct counters c = {.cpus = &cpu, .nr = 1};
	struct counts counts;
	int ends[2];

	CHECK(pipe(ends) == 0);
	cpu.leader = ends[0];
	CHECK(write(ends[1], group, sizeof(group)) == sizeof(group));
	CHECK(counters_take(&c, &counts) == 0);
	CHECK(counts.values[INSTRUCTIONS] == 30 && counts.values[CYCLES] == 60);
	close(ends[1]);
	CHECK(counters_take(&c, &counts) == -EIO);
	close(ends[0]);
	CHECK(counters_take(&c, &counts) == -EBADF);
}

void test_counters(void)
{
	everything();
	parts();
	none();
	sums();
	shared();
	dead();
	reading();
}
