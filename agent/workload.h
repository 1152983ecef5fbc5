/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a workload is, and all that it may use of the agent.
 *
 * A workload is one file, workloads/NAME.c. It fills a struct workload, hands
 * it to WORKLOAD(), and is in the agent: nothing else is edited. Its
 * parameters, metrics and invariants are described to the lab by
 * workloads/NAME.toml in the top folder; the names must agree.
 *
 *	static int run(struct trial *t)
 *	{
 *		int64_t start = now_ns();
 *
 *		if (let_go_of_it())
 *			return wl_fail(t, "let_go_of_it: %m");
 *		wl_sample(t, "let_go_ns", now_ns() - start);
 *		wl_check(t, "all_gone", left() == 0, "%d left", left());
 *		return 0;
 *	}
 *
 *	static const char *const params[] = { "things", NULL };
 *	static const struct workload example = {
 *		.name = "example", .summary = "let go of many things",
 *		.params = params, .run = run,
 *	};
 *	WORKLOAD(example);
 *
 * One trial runs at a time, so a workload may keep its state in static
 * variables; setup() must then initialise them, since trials follow each other.
 */
#ifndef KTEARDOWN_WORKLOAD_H
#define KTEARDOWN_WORKLOAD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* One execution of a workload at one parameter point; the agent's own. */
struct trial;
struct histogram;

struct workload {
	const char *name;
	const char *summary; /* one line, for --list */
	const char *const *params; /* names, ended by NULL; NULL: none */

	/*
	 * What wl_profile_begin() and wl_profile_end() stand around, in words. NULL:
	 * run() does not call them, and a profile is of the whole of it.
	 */
	const char *stretch;

	/* Once, before the repetitions. 0, or what wl_fail() returns. May be NULL. */
	int (*setup)(struct trial *t);
	/* One repetition: do it, measure it, hand out samples and checks. */
	int (*run)(struct trial *t);
	/*
	 * Once, whatever happened, setup() that failed halfway included.
	 * Leaves the guest as setup() found it: the next trial starts here.
	 * May be NULL.
	 */
	void (*cleanup)(struct trial *t);
};

/* Puts the workload in the list that the linker makes of section "workloads". */
#define WORKLOAD(w)                                                                                \
	static const struct workload *const w##_registered                                         \
		__attribute__((used, section("workloads"))) = &(w)

/* -- what the plan asked for: the plan was checked, so each parameter is there -- */

/* The value of an integer parameter; one that is not an integer ends the agent with an error. */
int64_t wl_param_int(const struct trial *t, const char *name);
const char *wl_param_str(const struct trial *t, const char *name);
/* Which of the choices, a list that ends with NULL, a parameter is; none of them ends the agent. */
int wl_param_choice(const struct trial *t, const char *name, const char *const *choices);

/*
 * -- what the workload has to say; each is a record, sent at once, and so never
 * from inside a measured stretch --
 */

/* One measured value. The metric's name ends in its unit (_ns, _kb, _count, ...). */
void wl_sample(struct trial *t, const char *metric, int64_t value);
/* The same of a share or a rate: part / whole; whole > 0. */
void wl_sample_ratio(struct trial *t, const char *metric, int64_t part, int64_t whole);
/* All values of a metric of time (lib/histogram.h), beside the samples that are made of them. */
void wl_histogram(struct trial *t, const char *metric, const struct histogram *h);
/* An invariant. A false one makes the trial void; returns ok. */
bool wl_check(struct trial *t, const char *name, bool ok, const char *detail, ...) PRINTF(4, 5);
/* Slow, not hung: at least one in the workload's silence_s where no sample comes. */
void wl_alive(struct trial *t, const char *detail, ...) PRINTF(2, 3);
/* The workload cannot run (a missing file, a failed call); returns -1 to be returned. */
int wl_fail(struct trial *t, const char *detail, ...) PRINTF(2, 3);

/*
 * -- where the time goes: around the stretch that a profile is to explain, in run(), once. Both do
 * nothing unless the plan asks for a profile. Then all CPUs are sampled in between, which costs
 * time: what is measured meanwhile is compared with nothing --
 */

void wl_profile_begin(struct trial *t);
void wl_profile_end(struct trial *t);

/* -- tools; those that can fail return 0 or a count, or -errno -- */

/*
 * Before a measured stretch: sleep for ms and a bit more, drawn from the seed,
 * the trial and the repetition. So every repetition begins in another phase of
 * the timer tick, and the same one of every kernel in the same phase.
 */
void wl_settle(const struct trial *t, int64_t ms);

/* CLOCK_MONOTONIC in ns. On the instruction clock: guest instructions. */
int64_t now_ns(void);
void sleep_ms(int64_t ms);
void sleep_ns(int64_t ns);

/* Write the formatted text to a file of procfs, sysfs or cgroupfs in one write. */
int write_file(const char *path, const char *text, ...) PRINTF(2, 3);
/* Read up to size - 1 bytes, ended by a zero. Returns the length. */
int read_file(const char *path, char *text, size_t size);
/* Write or read all of len bytes, whatever signals and short counts say. Reading
 * less than len is -EPIPE: whoever should have written them is gone. */
int write_all(int fd, const void *data, size_t len);
int read_all(int fd, void *data, size_t len);

/* The calling thread on this CPU only, from now on. */
int stay_on_cpu(int cpu);

/* Let the guest hold millions of tasks: pid_max, threads-max, RLIMIT_NPROC, RLIMIT_NOFILE. */
int raise_limits(void);

/*
 * Get rid of a child and of all that was or becomes the agent's to reap: kill
 * it, wait until the agent has no child left. For cleanup(), where no child of
 * the agent may survive. Millions of orphaned zombies are let go by the kernel
 * itself, without a wait for each.
 */
void kill_and_reap_all(int pid);

/* A small random generator (splitmix64): the same seed gives the same numbers everywhere. */
struct prng {
	uint64_t state;
};

uint64_t prng_next(struct prng *p);
/* Uniform in 0 .. bound - 1; bound > 0. */
uint64_t prng_below(struct prng *p, uint64_t bound);

#endif
