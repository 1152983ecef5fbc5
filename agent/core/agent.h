/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The agent is PID 1 of the guest. This header is for the files of core/; workloads include only
 * workload.h and the headers of lib/.
 *
 *	main.c    reads the command line and calls the rest in order
 *	boot.c    mounts, modules, the port for records; powering off
 *	plan.c    parses the text of /plan into a struct plan
 *	trial.c   runs one trial: setup, repetitions, cleanup
 *	record.c  writes records, one line of JSON each
 *	log.c     marks the trials in the kernel's log
 *	guest.c   describes the guest: its kernel, CPUs and memory
 *	profile.c samples where the time of a stretch goes
 *	perturb.c changes the guest before the first trial, as a seed says
 *	util.c    clock, files, random numbers, reaping
 */
#ifndef KTEARDOWN_AGENT_H
#define KTEARDOWN_AGENT_H

#include "workload.h"

#define PROTOCOL 1
#define DETAIL_MAX 512

/* -- plan.c -- */

struct param {
	char *name, *value;
};

struct trial_plan {
	int index;
	const struct workload *workload;
	int warmup, repetitions;
	int64_t profile_ns; /* the period of its profile; 0: none */
	struct param *params;
	int nr_params;
};

struct plan {
	uint64_t seed;
	char **modules;
	int nr_modules;
	struct trial_plan *trials;
	int nr_trials;
	int64_t profile_ns; /* for the trials that follow; used while the plan is read */
};

/* 0, or -1 with a message that names the line in error (DETAIL_MAX bytes). */
int plan_parse(const char *text, size_t len, struct plan *plan, char *error);
void plan_free(struct plan *plan);

const struct workload *workload_find(const char *name);
/* The i-th workload, NULL after the last. */
const struct workload *workload_at(int i);

/* -- record.c: where the records go, and what they look like -- */

void record_to(int fd);
/* False until record_to() was called: an error before that can only be printed on the console. */
bool record_ready(void);

void record_trial_start(const struct trial_plan *p);
void record_sample(int trial, int repetition, const char *metric, int64_t value, bool warmup);
/* Written with six decimals; the value must be finite. */
void record_ratio(int trial, int repetition, const char *metric, double value, bool warmup);
void record_check(int trial, int repetition, const char *name, bool ok, const char *detail);
/* Written as several records if necessary; an empty histogram gives no record. */
void record_histogram(int trial, int repetition, const char *metric, const struct histogram *h,
		      bool warmup);
void record_alive(int trial, const char *detail);
void record_trial_end(int trial, const char *status, const char *detail);
void record_error(const char *detail);
void record_bye(int trials);

/*
 * A record that is being written. If it becomes too long, its strings are cut; it stays
 * valid JSON.
 */
struct line {
	char text[4096];
	size_t len;
	bool first;
};

void line_begin(struct line *l, const char *type);
void line_int(struct line *l, const char *key, int64_t value);
void line_bool(struct line *l, const char *key, bool value);
void line_str(struct line *l, const char *key, const char *value);
/*
 * Written as an integer if the text is one that JSON and 64 bits can hold, otherwise as a
 * string.
 */
void line_value(struct line *l, const char *key, const char *value);
void line_open(struct line *l, const char *key);
void line_close(struct line *l);
/* An array of strings. */
void line_array(struct line *l, const char *key);
void line_item(struct line *l, const char *value);
void line_array_end(struct line *l);
/* Adds [a,b] to an array; false if there is no room for it. */
bool line_pair(struct line *l, int64_t a, int64_t b);
/* Closes the line with a newline and returns its length. */
size_t line_end(struct line *l);
/* Ends the line and writes it to the records' file descriptor; ends the agent if that fails. */
void line_send(struct line *l);

/* -- guest.c -- */

/* The kernel, the CPUs, the memory, and what else may explain a figure. */
void record_hello(void);
/* The clock that times the trials, once boot_clock() has returned. */
void record_settled(void);
/*
 * The debugging feature that this line of the kernel's log announces and that slows the
 * kernel down everywhere; NULL if it announces no such feature.
 */
const char *guest_debug(const char *text);

/* -- trial.c -- */

void trial_run(const struct trial_plan *p, uint64_t seed);

/* -- log.c -- */

/* Marks the beginning of a trial in the kernel's log. */
void log_trial(const struct trial_plan *p);
/* With kmemleak in the kernel: reports in the kernel's log what leaked since log_trial(). */
void log_leaks(void);

/* -- profile.c -- */

struct profile {
	int trial, repetition;
	int64_t period_ns, stretch_ns, samples, lost;
	int cpus;
};

/*
 * Sampling has begun on return; the stretch begins lead_ns later. 0, or -errno if the
 * kernel cannot sample.
 */
int profile_begin(int64_t period_ns, int64_t lead_ns);
void profile_stop(void);
/*
 * Writes what was sampled since profile_begin() as records: p, whose counts are filled in,
 * and its stacks. Writes nothing if nothing was sampled. 0 or -errno.
 */
int profile_report(struct profile *p);

void record_profile(const struct profile *p);
void record_stack(const struct profile *p, const char *stack, int64_t count, int64_t ns);

/*
 * -- counts/counts.c: counts events of the processor in the stretch of each repetition, in the
 * agent of --counts alone. In every other agent trial.c has functions that do nothing --
 */

/* Just before the stretch, and just after it. */
void counts_begin(struct trial *t);
void counts_end(void);
/* After run(), also if that failed within its stretch: reports what was counted as metrics. */
void counts_report(void);

/* -- perturb.c -- */

/*
 * Lets the seed change slab layouts, process numbers and the phase of the timer. Seed 0
 * changes nothing.
 */
void perturb(uint64_t seed);

/* -- boot.c -- */

void boot_mounts(void);
void boot_modules(const struct plan *plan);
/* The port's file descriptor. Waits until the driver has found the port. */
int boot_records_port(void);
/* Waits until timers have their final resolution. */
void boot_clock(void);
__attribute__((noreturn)) void power_off(void);
/* Reports the error, as a record if possible, and ends the agent. */
__attribute__((noreturn)) void agent_error(const char *detail, ...) PRINTF(1, 2);

#endif
