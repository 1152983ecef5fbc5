/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a workload is, and all that it may use of the agent.
 *
 * A workload is workloads/NAME/NAME.c, with more files in the same folder if it needs them; a
 * single file workloads/NAME.c works as well. A workload that compares no figure is in stress/.
 * It fills a struct workload, passes it to WORKLOAD(), and is then part of the agent: no other file
 * is edited. workloads/NAME.toml in the top folder describes its parameters, metrics and invariants
 * to the lab; the names must agree.
 *
 *	static int run(struct trial *t)
 *	{
 *		int64_t start = now_ns();
 *
 *		if (free_it())
 *			return wl_fail(t, "free_it: %m");
 *		wl_sample(t, "free_ns", now_ns() - start);
 *		wl_check(t, "all_freed", left() == 0, "%d left", left());
 *		return 0;
 *	}
 *
 *	static const char *const params[] = { "objects", NULL };
 *	static const struct workload example = {
 *		.name = "example", .summary = "free many objects",
 *		.params = params, .run = run,
 *	};
 *	WORKLOAD(example);
 *
 * Only one trial runs at a time, so a workload may keep its state in static variables; setup()
 * must initialise them, since the next trial uses the same ones.
 */
#ifndef KTEARDOWN_WORKLOAD_H
#define KTEARDOWN_WORKLOAD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* One execution of a workload at one parameter point; only the agent sees inside. */
struct trial;
struct histogram;

struct workload {
	const char *name;
	const char *summary; /* one line, for --list */
	const char *const *params; /* names, ended by NULL; NULL: no parameters */

	/*
	 * What happens between wl_profile_begin() and wl_profile_end(), in words. NULL: run() does
	 * not call them, and a profile covers all of run().
	 */
	const char *stretch;

	/*
	 * Called once, before the repetitions. Returns 0, or what wl_fail() returns. May be NULL.
	 */
	int (*setup)(struct trial *t);
	/* One repetition: does the work, measures it, reports samples and checks. */
	int (*run)(struct trial *t);
	/*
	 * Called once in any case, also after a setup() that failed halfway. Leaves the guest as
	 * setup() found it, since the next trial starts from there. May be NULL.
	 */
	void (*cleanup)(struct trial *t);
};

/* Puts the workload into the list that the linker makes of the section "workloads". */
#define WORKLOAD(w)                                                                                \
	static const struct workload *const w##_registered                                         \
		__attribute__((used, section("workloads"))) = &(w)

/* -- parameters: the plan was checked, so each parameter has a value -- */

/*
 * The value of an integer parameter. A value that is not an integer ends the agent with an
 * error.
 */
int64_t wl_param_int(const struct trial *t, const char *name);
const char *wl_param_str(const struct trial *t, const char *name);
/*
 * The index of the parameter's value in choices, a list that ends with NULL. A value that
 * is not in the list ends the agent with an error.
 */
int wl_param_choice(const struct trial *t, const char *name, const char *const *choices);

/*
 * -- reporting: each call sends a record at once, so do not call these inside a measured
 * stretch --
 */

/* One measured value. The metric's name ends in its unit (_ns, _kb, _count, ...). */
void wl_sample(struct trial *t, const char *metric, int64_t value);
/* The same for a share or a rate: part / whole; whole > 0. */
void wl_sample_ratio(struct trial *t, const char *metric, int64_t part, int64_t whole);
/*
 * All values of a metric of time (lib/histogram.h), in addition to the samples that are
 * computed from them.
 */
void wl_histogram(struct trial *t, const char *metric, const struct histogram *h);
/* An invariant. If ok is false, the trial is void. Returns ok. */
bool wl_check(struct trial *t, const char *name, bool ok, const char *detail, ...) PRINTF(4, 5);
/*
 * Reports that the workload is slow and not hung: call it at least once in the workload's
 * silence_s while there is no sample.
 */
void wl_alive(struct trial *t, const char *detail, ...) PRINTF(2, 3);
/*
 * Reports that the workload cannot run (a missing file, a failed call). Returns -1, for
 * the caller to return.
 */
int wl_fail(struct trial *t, const char *detail, ...) PRINTF(2, 3);

/*
 * -- profiling: call these in run(), once, around the stretch that a profile is to
 * explain. Both do nothing unless the plan asks for a profile. If it does, all CPUs are
 * sampled in between, which costs time: what is measured meanwhile is not compared with
 * anything --
 */

void wl_profile_begin(struct trial *t);
void wl_profile_end(struct trial *t);

/* -- utilities; those that can fail return 0 or a count, or -errno -- */

/*
 * Call this before a measured stretch: it sleeps for ms and a little more, drawn from the
 * seed, the trial and the repetition. So every repetition begins in another phase of the
 * timer tick, and the same repetition begins in the same phase with every kernel.
 */
void wl_settle(const struct trial *t, int64_t ms);

/* CLOCK_MONOTONIC in ns. On the instruction clock this counts guest instructions. */
int64_t now_ns(void);
void sleep_ms(int64_t ms);
void sleep_ns(int64_t ns);

/* Writes the formatted text to a file of procfs, sysfs or cgroupfs in one write. */
int write_file(const char *path, const char *text, ...) PRINTF(2, 3);
/* Reads up to size - 1 bytes and adds a zero. Returns the length. */
int read_file(const char *path, char *text, size_t size);
/*
 * Write or read exactly len bytes, continuing after signals and short counts. If the data
 * end early, read_all() returns -EPIPE: the writer is gone.
 */
int write_all(int fd, const void *data, size_t len);
int read_all(int fd, void *data, size_t len);

/* Binds the calling thread to this CPU. */
int stay_on_cpu(int cpu);

/*
 * Raises the limits of the guest so that it can have millions of tasks: pid_max,
 * threads-max, RLIMIT_NPROC, RLIMIT_NOFILE.
 */
int raise_limits(void);

/*
 * Kills a child and waits until the agent has no child left, including tasks that are
 * reparented to the agent meanwhile. For cleanup(), after which no child of the agent may
 * exist. The kernel itself releases orphaned zombies, so millions of them need no wait()
 * each.
 */
void kill_and_reap_all(int pid);

/* A small pseudorandom generator (splitmix64): the same seed gives the same numbers everywhere. */
struct prng {
	uint64_t state;
};

uint64_t prng_next(struct prng *p);
/* Uniform in 0 .. bound - 1; bound > 0. */
uint64_t prng_below(struct prng *p, uint64_t bound);

#endif
